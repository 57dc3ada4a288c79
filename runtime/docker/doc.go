// Package docker runs single containers on a Docker engine (20.10 or newer). It
// is what runtime/pods stands on, and the store of volumes; github.com/docker/docker
// is known nowhere else.
//
// One Host serves one daemon id on one engine. Everything it makes carries that
// id as a label; whatever carries another one, or none, is only ever looked at.
//
//	host.go      Config, New, Ping
//	compat.go    calls that differ between engine versions
//	create.go    one container: checks, network, resolver, create, files
//	config.go    pure: what the engine is asked for, from a ContainerSpec
//	files.go     files put into a created container
//	verbs.go     start, stop, remove, rename
//	list.go      list and inspect
//	watch.go     the one event subscription, which feeds the caches
//	network.go   a bridge per namespace
//	subnet.go    pure: a free subnet
//	resolver.go  resolv.conf of the members
//	volume.go    volumes.Store
//	image.go     images and pulls; auth.go: registry credentials
//	check.go     probes
//	exec.go      commands in a container; logs.go: their output
//	ports.go     who holds a port of the host
//	problem.go   pure: the engine's sentences → runtime's reasons
package docker
