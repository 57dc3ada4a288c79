package daemon

import (
	"context"
	"errors"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
	"github.com/stsd/stsd/runtime"
)

// trust adds registry credentials to a change. Those that are stored already
// change nothing.
func (c *change) trust(sent map[string]jobspecs.RegistryAuth) {
	for registry, a := range sent {
		if c.before != nil && c.before.Registries[registry] == a {
			continue
		}
		if c.intent.Registries == nil {
			c.intent.Registries = map[string]jobspecs.RegistryAuth{}
		}
		c.intent.Registries[registry] = a
		c.same = false
	}
}

// entrusted puts the credentials that were sent for a set into the containers
// whose spec has none.
func entrusted(spec *jobspecs.PodSpec, sent map[string]jobspecs.RegistryAuth) {
	for i := range spec.Containers {
		c := &spec.Containers[i]
		if a, ok := sent[jobspecs.Registry(c.Image)]; ok && c.Auth == nil {
			c.Auth = &a
		}
	}
}

// credentials are those of a request that a set's images need.
func credentials(t jobspecs.Template, sent map[string]jobspecs.RegistryAuth) map[string]jobspecs.RegistryAuth {
	var out map[string]jobspecs.RegistryAuth
	for _, i := range hcl.Images(t) {
		a, ok := sent[jobspecs.Registry(i.Ref)]
		if !ok {
			continue
		}
		if out == nil {
			out = map[string]jobspecs.RegistryAuth{}
		}
		out[jobspecs.Registry(i.Ref)] = a
	}
	return out
}

// hand gives the pods that stay the credentials of a new generation. They are
// part of no rendering, so that no plan tells of them, and one whose image could
// not be pulled waits for them.
func (l *loop) hand(ctx context.Context, s *sight) {
	if !l.owes {
		return
	}
	l.owes = false
	for i := range s.world.Pods {
		p := &s.world.Pods[i]
		r, ok := s.world.Specs[planner.Target{Ordinal: p.Ordinal, Revision: p.Revision}]
		if !p.Managed || !ok || r.Err != nil {
			continue
		}
		err := l.d.parts.Engine.Create(ctx, r.Spec) // of the same revision: it is kept for the next start
		l.owes = l.owes || errors.Is(err, runtime.ErrUnreachable)
	}
}
