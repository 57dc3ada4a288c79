package main

import (
	"context"
	"time"

	"github.com/stsd/stsd/daemon"
	"github.com/stsd/stsd/runtime/sim"
)

// simImages are what `--engine sim` has instead of a registry.
var simImages = map[string]sim.Program{
	"web:1":         {},
	"web:2":         {},
	"redis:7":       {},
	"stsd-demo:1":   {},
	"stsd-demo:2":   {},
	"slow:1":        {ReadyAfter: time.Second},
	"never-ready:1": {NeverReady: true},
	"crash:1":       {ExitAfter: 10 * time.Millisecond, ExitCode: 1},
	"done:1":        {ExitAfter: 10 * time.Millisecond},
}

// simParts is an engine in memory: members that exist nowhere, to try specs and
// commands on. It forgets everything when the daemon ends.
func simParts(id string) daemon.Parts {
	world := sim.New(sim.Config{Daemon: id})
	for ref, p := range simImages {
		world.Program(ref, p)
	}
	engine := sim.NewEngine(world)
	return daemon.Parts{
		Engine: engine, Volumes: world.Volumes(), Run: engine.Run,
		Name: func(context.Context) (string, error) { return "sim", nil },
	}
}
