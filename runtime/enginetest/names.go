package enginetest

import (
	"strings"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// renamed is a pod that serves and whose container somebody renames; it is given as
// it was before.
func (b *bench) renamed() runtime.Pod {
	b.Helper()
	b.create(b.spec(Serve, 0))
	p := b.untilReady(0)
	b.Rename(b.T, b.called(), b.called()+"-mine")
	return p
}

func (b *bench) called() string {
	return jobspecs.ContainerName(b.set.Namespace, b.name(0).Name, "")
}

// untilNamed waits until the container has its name again, and checks that it ran on.
func (b *bench) untilNamed(before runtime.Pod) {
	b.Helper()
	p := b.until("called as before", 0, func(p runtime.Pod) bool {
		return len(p.Notes) > 0 && p.Notes[len(p.Notes)-1].Reason == "Renamed"
	})
	if want := "its container was renamed to " + b.called() + "-mine by hand, and is " + b.called() + " again"; p.Notes[len(p.Notes)-1].Message != want {
		b.Errorf("note = %q, want %q", p.Notes[len(p.Notes)-1].Message, want)
	}
	if p.Phase != runtime.Running || p.Reason != "" || !p.Ready || p.Restarts != 0 ||
		p.Containers[0].ID != before.Containers[0].ID || !p.StartedAt.Equal(before.StartedAt) {
		b.Errorf("it is %+v, want it running as before: %+v", p, before)
	}
}

var ofNames = []sentence{
	{"a container that was renamed by hand runs on and gets its name back", func(b *bench) {
		if b.Rename == nil {
			b.Skip("nobody can rename containers")
		}
		b.untilNamed(b.renamed())
	}},
	{"one that was renamed while no daemon ran gets its name back once its spec is handed over", func(b *bench) {
		if b.Rename == nil || b.Again == nil {
			b.Skip("nobody can rename containers, or the engine cannot be restarted")
		}
		s := b.spec(Serve, 0)
		b.create(s)
		before := b.untilReady(0)
		b.Engine = b.Again(b.T)
		b.Rename(b.T, b.called(), b.called()+"-mine")
		b.create(s)
		b.untilNamed(before)
	}},
	{"one whose name is taken meanwhile says so, runs on, and gets it back when it is free", func(b *bench) {
		if b.Rename == nil || b.Foreign == nil || b.Again == nil {
			b.Skip("nobody can rename or make containers, or the engine cannot be restarted")
		}
		s := b.spec(Serve, 0)
		b.create(s)
		before := b.untilReady(0)
		b.Engine = b.Again(b.T) // without its spec a pod is left alone
		b.Rename(b.T, b.called(), b.called()+"-mine")
		remove := b.Foreign(b.T, b.called())
		b.create(s)
		p := b.until(runtime.ReasonRenamed, 0, func(p runtime.Pod) bool { return p.Reason == runtime.ReasonRenamed })
		for _, word := range []string{b.called() + "-mine", "name back", "container"} {
			if !strings.Contains(p.Message, word) {
				b.Errorf("message %q does not say %q", p.Message, word)
			}
		}
		if p.Phase != runtime.Running || p.Restarts != 0 {
			b.Errorf("it is %+v, want it running", p)
		}
		b.untilReady(0)
		remove()
		b.untilNamed(before)
	}},
}
