package test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets the simulation, which makes much garbage that lives as short as a
// story, collect it seldom.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
	}
	os.Exit(m.Run())
}

// memory is a folder of one story: its state file lives in memory where there is
// such a place, and is gone with it.
func memory(t *testing.T) (dir string, remove func()) {
	const shm = "/dev/shm"
	parent := "" // the machine's own for what is temporary
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		parent = shm
	}
	dir, err := os.MkdirTemp(parent, "stsd-sim-")
	if err != nil {
		t.Fatal(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}
