package daemon

import (
	"slices"
	"strings"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs/hcl"
	"github.com/stsd/stsd/runtime"
)

// unsaid are the texts that must not be shown of a set: its sensitive inputs and
// secrets and what was made of them, in every way in which an engine or a program
// that it runs may write them.
func (d *Daemon) unsaid(v *store.View) []string {
	return hcl.Disguises(d.sensitiveTexts(v))
}

func (d *Daemon) sensitiveTexts(v *store.View) []string {
	set := &v.Record.Set
	out := hcl.SensitiveTexts(set, v.Record.Template)
	if s, err := d.store.Scope(set.Key()); err == nil { // else there is nothing that was given
		out = append(out, hcl.SensitiveInputs(s.Sources, s.Inputs)...)
	}
	for i := range v.Revisions {
		r := &v.Revisions[i]
		out = append(out, hcl.SensitiveTexts(set, r.Template)...)
		out = append(out, hcl.SensitiveInputs(r.Origin.Source, r.Origin.Inputs)...)
	}
	if secrets, err := d.store.Secrets(); err == nil {
		for _, x := range secrets {
			if x.Namespace == set.Namespace {
				out = append(out, x.Value)
			}
		}
	}
	for _, a := range v.Registries {
		out = append(out, a.Password)
	}
	return out
}

// renderedTexts are the sensitive files of members as they are rendered.
func renderedTexts(specs map[planner.Target]planner.Rendered) []string {
	var out []string
	for _, r := range specs {
		for i := range r.Spec.Containers {
			for _, f := range r.Spec.Containers[i].Files {
				if f.Sensitive {
					out = append(out, string(f.Content))
				}
			}
		}
	}
	return out
}

// hush takes what must not be shown out of what the engine says and of what
// rendering says.
func (l *loop) hush(w *planner.World) {
	w.Pods = cutPods(scrubPods(w.Pods, l.unsaid))
	for t, r := range w.Specs {
		if r.Err != nil {
			r.Err = scrubError(r.Err, l.unsaid)
			w.Specs[t] = r
		}
	}
}

// longestMessage is how much of what an engine says is shown. It is cut after it was
// scrubbed: half of a secret is not found any more.
const longestMessage = 400

// cutPods shortens what an engine says of pods.
func cutPods(pods []runtime.Pod) []runtime.Pod {
	out := slices.Clone(pods)
	for i := range out {
		p := &out[i]
		p.Message = cut(p.Message)
		p.Containers = slices.Clone(p.Containers)
		for j := range p.Containers {
			p.Containers[j].Message = cut(p.Containers[j].Message)
		}
		p.Notes = slices.Clone(p.Notes)
		for j := range p.Notes {
			p.Notes[j].Message = cut(p.Notes[j].Message)
		}
	}
	return out
}

func cut(s string) string {
	if len(s) <= longestMessage {
		return s
	}
	return strings.ToValidUTF8(s[:longestMessage], "") + "…"
}

// scrubPods takes what must not be shown out of what an engine says of pods.
func scrubPods(pods []runtime.Pod, texts []string) []runtime.Pod {
	if len(texts) == 0 {
		return pods
	}
	out := slices.Clone(pods)
	for i := range out {
		p := &out[i]
		p.Message, p.Role = hcl.Scrub(p.Message, texts), hcl.Scrub(p.Role, texts)
		p.Containers = slices.Clone(p.Containers)
		for j := range p.Containers {
			p.Containers[j].Message = hcl.Scrub(p.Containers[j].Message, texts)
		}
		p.Notes = slices.Clone(p.Notes)
		for j := range p.Notes {
			p.Notes[j].Message = hcl.Scrub(p.Notes[j].Message, texts)
		}
	}
	return out
}

// scrubbedError says less than the error that it wraps.
type scrubbedError struct {
	text string
	err  error
}

func (e *scrubbedError) Error() string { return e.text }
func (e *scrubbedError) Unwrap() error { return e.err }

func scrubError(err error, texts []string) error {
	if err == nil {
		return nil
	}
	if text := hcl.Scrub(err.Error(), texts); text != err.Error() {
		return &scrubbedError{text, err}
	}
	return err
}
