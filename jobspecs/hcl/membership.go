package hcl

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stsd/stsd/jobspecs"
)

// numbersOf are the whole numbers of a list, ascending, each once.
func numbersOf(v any) []int {
	list, _ := v.([]any)
	var out []int
	for _, item := range list {
		if n, ok := item.(json.Number); ok {
			out = append(out, number64(n))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// guardOf is the guard block of a set's document; nil: none.
func guardOf(doc document) *jobspecs.Guard {
	g := part(doc, "guard")
	if g == nil {
		return nil
	}
	return &jobspecs.Guard{Spec: encode(g)}
}

// hooksOf takes the hook blocks out of a set's document, in source order.
func hooksOf(b *hclsyntax.Block, doc document) []jobspecs.Hook {
	var list []jobspecs.Hook
	for _, c := range b.Body.Blocks {
		if c.Type != "hook" || len(c.Labels) != 1 {
			continue
		}
		h := part(doc, "hook", c.Labels[0])
		if h == nil {
			continue
		}
		hook := jobspecs.Hook{
			Name: c.Labels[0], On: textOr(h, "on", ""), Container: textOr(h, "container", ""),
			Timeout: durationOr(h, "timeout", time.Minute), OnFailure: textOr(h, "on_failure", jobspecs.FailAbort),
		}
		hook.Once, _ = h["once"].(bool)
		if n, ok := h["ordinal"].(json.Number); ok {
			o := number64(n)
			hook.Ordinal = &o
		}
		rest := document{}
		for _, key := range []string{"command", "var", "secret", "read"} {
			if v, ok := h[key]; ok {
				rest[key] = v
			}
		}
		hook.Spec = encode(rest)
		list = append(list, hook)
	}
	return list
}

// membership holds what is said about the members of a set against each other.
func (d *decoder) membership(b *hclsyntax.Block, set *jobspecs.Set, doc document) {
	for i, name := range set.StartAfter {
		if name == set.Name {
			d.error(d.place(fmt.Sprintf("start_after[%d]", i)), "a set cannot start after itself", "")
		}
	}
	ordinals := set.Ordinals(max(replicasOf(set), 1))
	for i := range set.Hooks {
		d.hook(&set.Hooks[i], doc, set.Replicas != nil, ordinals)
	}
	d.roles(b, set)
}

// hook holds one hook against the set's containers and ordinals.
func (d *decoder) hook(h *jobspecs.Hook, doc document, counted bool, ordinals []int) {
	path := "hook." + h.Name
	if h.Once && h.On != jobspecs.OnSetReady {
		d.error(d.place(path+".once"), fmt.Sprintf("once is for on = %q only", jobspecs.OnSetReady), "A member joins once, and leaves once.")
	}
	if h.Ordinal != nil && counted && !slices.Contains(ordinals, *h.Ordinal) {
		d.warn(d.place(path+".ordinal"), fmt.Sprintf("hook %q runs in ordinal %d, which the set does not have", h.Name, *h.Ordinal), "")
	}
	names := append(sortedKeys(part(doc, jobspecs.KindMain)), sortedKeys(part(doc, jobspecs.KindSidecar))...)
	if h.Container != "" && !slices.Contains(names, h.Container) {
		detail := "There are " + strings.Join(names, ", ") + "."
		if near := nearest(h.Container, names); near != "" {
			detail = fmt.Sprintf("Did you mean %q?", near)
		}
		d.error(d.place(path+".container"), fmt.Sprintf("there is no container or sidecar %q", h.Container), detail)
	}
}

// roles warns of an order that nothing gives.
func (d *decoder) roles(b *hclsyntax.Block, set *jobspecs.Set) {
	switch byRole := set.Update.Order == jobspecs.OrderRole; {
	case !byRole && set.Update.Last != "":
		d.warn(d.place("update.last"), "last means nothing without order = \"role\"", "")
	case byRole && set.Update.Last == "":
		d.error(d.place("update.order"), "order = \"role\" needs last: the role that goes last", "")
	case byRole && !hasRoleProbe(b):
		d.warn(d.place("update.order"), "order = \"role\" needs a role probe: without one no member has a role", "")
	}
}

func hasRoleProbe(b *hclsyntax.Block) bool {
	for _, c := range b.Body.Blocks {
		for _, p := range c.Body.Blocks {
			if p.Type == "probe" && len(p.Labels) == 1 && p.Labels[0] == "role" {
				return true
			}
		}
	}
	return false
}

// RenderGuard is min_available of a set's guard; zero without one.
func RenderGuard(set *jobspecs.Set, env Env) (int, error) {
	if set.Guard == nil {
		return 0, nil
	}
	out, err := renderBeside[struct {
		MinAvailable int `json:"min_available"`
	}](set, env, set.Guard.Spec, guardSchema, "guard")
	return out.MinAvailable, err
}

// RenderHook is the command of a hook for the member env.Ordinal.
func RenderHook(set *jobspecs.Set, h *jobspecs.Hook, env Env) ([]string, error) {
	out, err := renderBeside[struct{ Command []string }](set, env, h.Spec, hookSchema, "hook."+h.Name)
	return out.Command, err
}

// renderBeside gives the expressions of a part that stands beside the template
// their values.
func renderBeside[T any](set *jobspecs.Set, env Env, spec json.RawMessage, s *block, path string) (T, error) {
	var none T
	r, err := newRenderer(set, nil, env)
	if err != nil {
		return none, fmt.Errorf("%s of %s: %w", path, set.Key(), err)
	}
	doc, err := decodeDocument(spec)
	if err != nil {
		return none, fmt.Errorf("%s of %s: %w", path, set.Key(), err)
	}
	out, err := resolve[T](r, r.view, doc, s, path)
	if err != nil {
		return none, fmt.Errorf("render %s: %w", jobspecs.MemberName(set.Name, env.Ordinal), err)
	}
	return out, nil
}
