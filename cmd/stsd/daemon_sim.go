package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stsd/stsd/daemon"
	"github.com/stsd/stsd/runtime/sim"
)

// simImages are what `--engine sim` has instead of a registry.
var simImages = map[string]sim.Program{
	"web:1":         {},
	"web:2":         {},
	"redis:7":       {},
	"stsd-demo:1":   {Exec: simDemo},
	"stsd-demo:2":   {Exec: simDemo},
	"slow:1":        {ReadyAfter: time.Second},
	"never-ready:1": {NeverReady: true},
	"crash:1":       {ExitAfter: 10 * time.Millisecond, ExitCode: 1, NeverReady: true}, // it ends before it serves
	"done:1":        {ExitAfter: 10 * time.Millisecond},
}

// simDemo is what two verbs of the demo image do, and what every program can.
func simDemo(member string, argv []string) (output string, code int) {
	switch strings.Join(argv, " ") {
	case "demo hostname":
		return member + "\n", 0
	case "demo broken":
		return "demo: broken on purpose\n", 1
	}
	return sim.Builtin(member, argv)
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
		Engine: engine, Volumes: world.Volumes(), Run: func(ctx context.Context) error { return tellViolations(world, engine.Run(ctx)) },
		Name: func(context.Context) (string, error) { return "sim", nil },
	}
}

// tellViolations says at the end of a simulation which promises were broken in it.
func tellViolations(world *sim.World, err error) error {
	for _, v := range world.Violations() {
		fmt.Fprintln(os.Stderr, "stsd: promise broken:", v)
	}
	return err
}
