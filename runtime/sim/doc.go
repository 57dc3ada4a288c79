// Package sim is a container host in memory: containers, images, volumes,
// networks, addresses and ports as Docker has them, with faults. It reads the
// clock and sleeps through package time, so that testing/synctest drives it, and
// it does nothing by chance.
//
// World is one host. World.Host and World.Volumes are what an engine stands on;
// the other methods are the hands of a user or of fate: Kill, RemoveContainer,
// RestartEngine, Fail. A container may join a sandbox, whose network it then has
// for as long as that run of the sandbox lasts.
//
// The world checks at every step what the design promises: no ordinal has two
// running pods, no part of a pod two running containers, no volume two pods, and
// nothing runs before the init containers and sidecars that precede it. See
// Violations.
package sim
