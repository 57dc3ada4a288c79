// Package sim is a container host in memory: containers, images, volumes,
// networks, addresses and ports as Docker has them, with faults. It reads the
// clock and sleeps through package time, so that testing/synctest drives it, and
// it does nothing by chance.
//
// World is one host. World.Host and World.Volumes are what an engine stands on;
// the other methods are the hands of a user or of fate: Kill, RemoveContainer,
// RestartEngine, Fail. The world checks at every step that no two containers of
// one pod run, nor two on one volume: see Violations.
package sim
