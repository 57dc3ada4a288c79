package daemon

import (
	"slices"

	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs/hcl"
	"github.com/stsd/stsd/runtime"
)

// unsaid are the texts that must not be shown of a set: an engine that refuses a
// command or an option quotes it.
func unsaid(v *store.View) []string {
	var out []string
	out = append(out, hcl.SensitiveTexts(&v.Record.Set, v.Record.Template)...)
	for i := range v.Revisions {
		out = append(out, hcl.SensitiveTexts(&v.Record.Set, v.Revisions[i].Template)...)
	}
	for _, a := range v.Registries {
		if a.Password != "" {
			out = append(out, a.Password)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
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
