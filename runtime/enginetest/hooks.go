package enginetest

import (
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

func postStart(argv []string) func(*jobspecs.Container) {
	return func(c *jobspecs.Container) { c.PostStart = &jobspecs.Handler{Exec: argv} }
}

func preStop(argv []string) func(*jobspecs.Container) {
	return func(c *jobspecs.Container) { c.PreStop = &jobspecs.Handler{Exec: argv} }
}

// warned are the warnings among a pod's notes that speak of something.
func warned(p runtime.Pod, of string) (list []runtime.Note) {
	for _, n := range p.Notes {
		if n.Warning && strings.Contains(n.Message, of) {
			list = append(list, n)
		}
	}
	return list
}

// ofHooks are the sentences of lifecycle hooks, notes, and what probes read.
var ofHooks = []sentence{
	{"a post_start that hangs keeps its container starting and the next one waiting", func(b *bench) {
		b.create(b.of(b.main("main", Wait, postStart(b.Commands.Hang)), b.main("second", Wait)))
		p := b.until("its hook", 0, func(p runtime.Pod) bool {
			return p.Phase == runtime.Starting && p.Reason == runtime.ReasonPostStart && in(p, "main").State == "running"
		})
		b.waiting(p, "second")
		if p.Ready {
			b.Error("it is ready before its hook ended")
		}
		b.stop(0, 2*time.Second)
		b.untilStopped(0)
	}},
	{"a post_start that succeeds is not in the way", func(b *bench) {
		b.create(b.of(b.sidecar("log", Wait, postStart(b.Commands.True)), b.main("main", Serve, postStart(b.Commands.True))))
		if p := b.untilReady(0); p.Restarts != 0 || len(warned(p, "")) != 0 {
			b.Errorf("pod is %+v, want it ready without warnings", p)
		}
	}},
	{"a post_start that fails restarts its container and is noted", func(b *bench) {
		b.create(b.of(b.main("main", Wait, postStart(b.Commands.False))))
		p := b.until("a restart because of its hook", 0, func(p runtime.Pod) bool {
			return p.Reason == runtime.ReasonPostStartFailed && p.Restarts > 0 && p.Phase == runtime.Backoff
		})
		notes := warned(p, "post_start")
		if p.Ready || len(notes) == 0 || notes[0].Container != "main" || notes[0].Time.IsZero() || notes[0].Reason == "" {
			b.Errorf("pod is %+v, want a warning of main's post_start", p)
		}
		for i, n := range p.Notes {
			if n.N != i+1 {
				b.Errorf("note %d has number %d, want them to count from 1", i, n.N)
			}
		}
	}},
	{"hooks are told why", func(b *bench) {
		if b.Commands.Reason == nil {
			b.Skip("no command looks at STSD_REASON here")
		}
		b.create(b.of(b.sidecar("log", Wait, preStop(b.Commands.Reason(runtime.WhyUpdate))),
			b.main("main", Wait, postStart(b.Commands.Reason(runtime.WhyStart)), preStop(b.Commands.Reason(runtime.WhyUpdate)))))
		b.untilReady(0)
		b.ok("stop", b.Engine.Stop(b.Context(), b.name(0), runtime.StopOptions{Grace: 10 * time.Second, Why: runtime.WhyUpdate}))
		p := b.untilStopped(0)
		if n := warned(p, ""); len(n) != 0 {
			b.Errorf("warnings %v, want none: each hook was told why", n)
		}
	}},
	{"a stop without a reason is told as delete", func(b *bench) {
		if b.Commands.Reason == nil {
			b.Skip("no command looks at STSD_REASON here")
		}
		b.create(b.of(b.main("main", Wait, preStop(b.Commands.Reason(runtime.WhyDelete))), b.main("second", Wait, preStop(b.Commands.Reason(runtime.WhyRestart)))))
		b.untilReady(0)
		b.stop(0, 10*time.Second)
		p := b.untilStopped(0)
		if n := warned(p, "pre_stop"); len(n) != 1 || n[0].Container != "second" {
			b.Errorf("warnings %v, want one of second, which waited for another reason", n)
		}
	}},
	{"the post_start of a restart is told so", func(b *bench) {
		if b.Commands.Reason == nil {
			b.Skip("no command looks at STSD_REASON here")
		}
		b.create(b.of(b.main("main", Brief, postStart(b.Commands.Reason(runtime.WhyStart)))))
		first := b.untilReady(0)
		if n := warned(first, ""); len(n) != 0 {
			b.Errorf("warnings of the first start %v, want none", n)
		}
		b.until("a warning of the second start", 0, func(p runtime.Pod) bool { return len(warned(p, "post_start")) > 0 && p.Restarts > 0 })
	}},
	{"a process that ends by itself calls no pre_stop", func(b *bench) {
		b.create(b.of(b.main("main", Brief, preStop(b.Commands.False))))
		p := b.until("two restarts", 0, func(p runtime.Pod) bool { return p.Restarts > 1 })
		if n := warned(p, "pre_stop"); len(n) != 0 {
			b.Errorf("warnings %v, want none", n)
		}
	}},
	{"a pre_stop that fails is noted and the end goes on", func(b *bench) {
		b.create(b.of(b.main("main", Wait, preStop(b.Commands.False))))
		b.untilReady(0)
		b.stop(0, 10*time.Second)
		p := b.untilStopped(0)
		if n := warned(p, "pre_stop"); len(n) != 1 || n[0].Container != "main" {
			b.Errorf("warnings %v, want one of main's pre_stop", n)
		}
	}},
	{"a pre_stop that hangs is within the grace and holds nobody else up", func(b *bench) {
		b.create(b.of(b.sidecar("log", Wait), b.main("main", Wait, preStop(b.Commands.Hang))))
		b.untilReady(0)
		began := time.Now()
		b.stop(0, 2*time.Second)
		b.until("its hook", 0, func(p runtime.Pod) bool { return p.Reason == runtime.ReasonPreStop || p.Gone() })
		b.untilStopped(0)
		if took := time.Since(began); took < 1900*time.Millisecond || took > 30*time.Second {
			b.Errorf("ended after %v, want about its grace of 2 s", took)
		}
	}},
	{"a grace of nothing runs no pre_stop", func(b *bench) {
		b.create(b.of(b.main("main", Stubborn, preStop(b.Commands.Hang))))
		b.untilReady(0)
		b.stop(0, 0)
		b.untilStopped(0)
	}},
	{"a role probe tells the role", func(b *bench) {
		if b.Commands.Role == nil {
			b.Skip("no command prints a role here")
		}
		b.create(b.of(b.main("main", Wait, func(c *jobspecs.Container) { c.Role = exec(b.Commands.Role, 1) })))
		b.until("the role primary", 0, func(p runtime.Pod) bool { return p.Ready && p.Role == "primary" })
	}},
	{"a log probe reads the output", func(b *bench) {
		if b.Line == "" {
			b.Skip("nothing is known of what programs write here")
		}
		log := func(pattern string) func(*jobspecs.Container) {
			return func(c *jobspecs.Container) {
				c.Startup = exec(nil, 600)
				c.Startup.Log = &jobspecs.LogCheck{Pattern: pattern}
			}
		}
		b.create(b.of(b.main("main", Serve, log(b.Line)), b.main("second", Wait, log("no program writes this"))))
		p := b.until("ready", 0, func(p runtime.Pod) bool { return in(p, "main").Ready && p.Reason == runtime.ReasonStartupPending })
		if p.Ready || in(p, "second").Ready {
			b.Errorf("pod is %+v, want its second container to wait for a line", p)
		}
	}},
}
