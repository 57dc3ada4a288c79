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
//	config.go    pure: what the engine is asked for, from a ContainerSpec; gpus.go: its GPUs
//	mounts.go    pure: volumes, scratch folders and paths of the host
//	sandbox.go   what the containers of a pod share; pause: the program of its one process
//	scratch.go   volumes of scratch folders
//	inside.go    reaching into volumes without a tool: owners of fresh ones
//	folders.go   folders of volumes: sub_path
//	user.go      whom a container runs as
//	files.go     files put into a created container, or bound from ours
//	memory.go    where sensitive files are
//	started.go   which post_start hooks are done
//	once.go      commands of hooks that outlive stsd
//	verbs.go     start, stop, remove, rename
//	list.go      list and inspect
//	watch.go     the one event subscription, which feeds the caches
//	network.go   a bridge per namespace
//	subnet.go    pure: a free subnet
//	resolver.go  resolv.conf of the members
//	volume.go    volumes.Store
//	image.go     images; platform.go: those for another one
//	pull.go      pulls and their progress; pullfailed.go: why one failed
//	auth.go      registry credentials; helper.go: programs that keep them
//	check.go     probes: http.go, grpc.go, checklog.go, checkexec.go
//	hook.go      post_start and pre_stop
//	listen.go    when a container begins to listen
//	exec.go      commands in a container; kill.go: their end; words.go: what they said
//	logs.go      output; find.go: which container of a pod
//	ports.go     who holds a port of the host
//	problem.go   pure: the engine's sentences → runtime's reasons; badcommand.go: → ours
package docker
