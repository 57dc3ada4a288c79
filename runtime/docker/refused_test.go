package docker

import (
	"context"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

func TestSentencesOfRefusedSettings(t *testing.T) {
	t.Parallel()
	const runc11 = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: "
	const runc10 = "OCI runtime create failed: container_linux.go:380: starting container process caused: process_linux.go:545: container init caused: "
	gpus := &container.HostConfig{Resources: container.Resources{DeviceRequests: []container.DeviceRequest{{Count: -1}}}}
	limits := &container.HostConfig{Resources: container.Resources{Ulimits: []*container.Ulimit{
		{Name: "memlock", Soft: -1, Hard: -1}, {Name: "nofile", Soft: 1024, Hard: 1 << 40}, {Name: "nproc", Soft: 9, Hard: 9},
	}}}
	sysctls := &container.HostConfig{Sysctls: map[string]string{"net.foo.bar": "1", "net.ipv4.ip_forward": "abc", "net.ipv4.conf.eth0/1.forwarding": "x"}}
	privileged := &container.HostConfig{Privileged: true}
	caps := &container.HostConfig{CapAdd: []string{"ALL", "NET_ADMIN"}}
	nothing := &container.HostConfig{}
	for _, c := range []struct {
		text  string
		asked *container.HostConfig
		want  string
	}{
		{`Error response from daemon: could not select device driver "" with capabilities: [[gpu]]`, gpus, `this engine has no driver for gpus = "all"`},
		{`could not select device driver "" with capabilities: [[gpu]]`, nothing, `this engine has no driver for gpus`},
		{`failed to create task for container: CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all`, gpus, `this engine has no driver for gpus = "all"`},
		{runc11 + "error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\n" +
			"nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory: unknown", gpus,
			`gpus = "all": its driver says: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory`},
		{runc11 + "error setting rlimits for ready process: error setting rlimit type 8: operation not permitted: unknown", limits, `ulimits.memlock = "unlimited" is more than the engine allows`},
		{runc11 + "error setting rlimits for ready process: error setting rlimit type 7: operation not permitted: unknown", limits, `ulimits.nofile = "1024:1099511627776" is more than the engine allows`},
		{runc10 + "setting rlimits for ready process caused: error setting rlimit type 6: operation not permitted: unknown", limits, `ulimits.nproc = 9 is more than the engine allows`},
		{"failed to create task for container: " + runc11 + "error setting rlimits for ready process: error setting rlimit type 9: invalid argument", limits, `ulimits.as: invalid argument`},
		{runc11 + "error setting rlimit type 99: operation not permitted: unknown", limits, `ulimits.99 is more than the engine allows`},
		{"crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied", limits, `ulimits.nofile = "1024:1099511627776" is more than the engine allows`},
		{runc11 + "open /proc/sys/net/foo/bar: no such file or directory: unknown", sysctls, `sysctls: the engine's kernel has no net.foo.bar`},
		{runc10 + "write sysctl key net.foo.bar: open /proc/sys/net/foo/bar: no such file or directory: unknown", sysctls, `sysctls: the engine's kernel has no net.foo.bar`},
		{runc11 + "write /proc/sys/net/ipv4/ip_forward: invalid argument: unknown", sysctls, `sysctls."net.ipv4.ip_forward" = "abc": the kernel does not take this value`},
		{runc11 + "write /proc/sys/net/ipv4/conf/eth0.1/forwarding: invalid argument: unknown", sysctls, `sysctls."net.ipv4.conf.eth0/1.forwarding" = "x": the kernel does not take this value`},
		{runc11 + "open /proc/sys/net/core/wmem_max: permission denied: unknown", sysctls, `sysctls: the engine may not set net.core.wmem_max: permission denied`},
		{runc11 + "open sysctl net.ipv4.ip_unprivileged_port_start file: reopen fd 8: permission denied", sysctls, `sysctls: the engine may not set net.ipv4.ip_unprivileged_port_start: permission denied`},
		{runc11 + "open sysctl net.foo.bar file: openat2 /proc/./sys/net/foo/bar: no such file or directory", sysctls, `sysctls: the engine's kernel has no net.foo.bar`},
		{"crun: open `/proc/sys/net/foo/bar`: No such file or directory: OCI runtime attempted to invoke a command that was not found", sysctls, `sysctls: the engine's kernel has no net.foo.bar`},
		{`failed to create task for container: failed to create shim task: OCI runtime create failed: sysctl "kernel.foo" is not in a separate kernel namespace: unknown`, sysctls, `sysctls: kernel.foo is the whole host's, not one container's`},
		{"failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: unable to apply caps: operation not permitted: unknown", privileged,
			`privileged: this engine has not all capabilities itself, and so cannot give them`},
		{"OCI runtime create failed: container_linux.go:380: starting container process caused: apply caps: operation not permitted: unknown", caps,
			`cap_add = ["ALL" "NET_ADMIN"]: this engine has not all of them itself, and so cannot give them`},
		{runc11 + "unable to apply caps: operation not permitted: unknown", nothing, `this engine cannot give the container its capabilities: it has not all of them itself`},
		{`privileged mode is incompatible with user namespaces.  You must run the container in the host namespace when running privileged mode`, privileged,
			`privileged: this engine keeps its containers in user namespaces, where nothing is privileged`},
		{`invalid CapAdd: unknown capability: "CAP_BOGUS"`, caps, `cap_add: there is no capability "BOGUS"`},
		{`invalid CapDrop: unknown capability: "CAP_BOGUS"`, caps, `cap_drop: there is no capability "BOGUS"`},
		{`Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available`, nothing, `cpu: this engine gives 0.01 to 2.00`},
		{`Minimum memory limit allowed is 6MB`, nothing, `memory: this engine gives 6MB or more`},
		{`Minimum memory limit can not be less than memory reservation limit, see usage`, nothing, `memory_reservation is more than memory`},
		{`error looking up logging plugin bogus: plugin "bogus" not found`, nothing, `log: this engine has no driver "bogus"`},
		{`unknown log opt 'foo' for json-file log driver`, nothing, `log: driver "json-file" has no option "foo"`},
		{`Invalid signal: BOGUS`, nothing, `stop_signal = "BOGUS": there is no such signal`},
		{runc11 + `error mounting "/a" to rootfs at "/etc/b": mount /a:/etc/b (via /proc/self/fd/6), flags: 0x5000: not a directory: unknown: Are you trying to mount a directory onto a file (or vice-versa)?`, nothing,
			`/a cannot be mounted at /etc/b: one of them is a folder and the other is none`},
		// about something else
		{runc11 + `exec: "nosuch": executable file not found in $PATH: unknown`, nothing, ""},
		{`error while creating mount source path '/x': mkdir /x: read-only file system`, nothing, ""},
		{`network stsd.x not found`, nothing, ""},
		{``, nothing, ""},
	} {
		if got := refusal(c.text, c.asked); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.text, got, c.want)
		}
		if c.want != "" && startReason(c.text) != "" {
			t.Errorf("%s: is %s", c.text, startReason(c.text))
		}
	}
}

func TestOnlyWhatAPersonNeedsOfASentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Error response from daemon: conflict": "conflict",
		"failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: apparmor failed to apply profile: write fsmount:fscontext:proc/thread-self/attr/apparmor/exec: no such file or directory: unknown": "apparmor failed to apply profile: write fsmount:fscontext:proc/thread-self/attr/apparmor/exec: no such file or directory",
		"OCI runtime create failed: container_linux.go:380: starting container process caused: process_linux.go:545: container init caused: pivot_root: invalid argument: unknown":                                                                                                                                          "pivot_root: invalid argument",
		"a failed to create shim task: in the middle": "a failed to create shim task: in the middle",
		"": "",
	} {
		if got := plain(text); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestTextOfGPUs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "all", "2", "1", "driver=foo", "driver=foo,2", "driver=foo,all", "device=0"} {
		requests, err := gpusOf(text)
		if got := gpusText(requests); got != text || err != nil {
			t.Errorf("%q reads as %q, %v", text, got, err)
		}
	}
}

// Every engine refuses these, whatever its machine has.
func TestWhatEnginesRefuseIsNamed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for i, c := range []struct {
		change func(*pods.ContainerSpec)
		want   string
	}{
		{func(s *pods.ContainerSpec) { s.Main.GPUs = "driver=nosuch" }, `this engine has no driver for gpus = "driver=nosuch"`},
		{func(s *pods.ContainerSpec) {
			s.Main.Ulimits = []jobspecs.Ulimit{{Name: "nofile", Soft: 1 << 40, Hard: 1 << 40}}
		}, `ulimits.nofile = 1099511627776 is more than the engine allows`},
		{func(s *pods.ContainerSpec) { s.Pod.Sysctls = map[string]string{"net.foo.bar": "1"} }, `sysctls: the engine's kernel has no net.foo.bar`},
		{func(s *pods.ContainerSpec) { s.Pod.Sysctls = map[string]string{"net.ipv4.ip_forward": "abc"} },
			`sysctls."net.ipv4.ip_forward" = "abc": the kernel does not take this value`},
		{func(s *pods.ContainerSpec) { s.Main.CapAdd = []string{"BOGUS"} }, `cap_add: there is no capability "BOGUS"`},
		{func(s *pods.ContainerSpec) { s.Main.Log = &jobspecs.Log{Driver: "bogus"} }, `log: this engine has no driver "bogus"`},
	} {
		id, err := e.Create(t.Context(), e.spec("web", i, c.change))
		if err == nil {
			err = e.Start(t.Context(), id)
		}
		wantProblem(t, err, runtime.ReasonCreateFailed, c.want)
	}
}

func TestAnImageWithoutACommandIsNamed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	bare := e.image + "-bare"
	importImage(t, bare, helperArchive(t))
	t.Cleanup(func() { raw().ImageRemove(context.Background(), bare, image.RemoveOptions{}) })
	_, err := e.Create(t.Context(), e.spec("web", 0, args(), func(s *pods.ContainerSpec) {
		s.Main.Image = bare
		s.Image = must(e.Image(t.Context(), bare))(t)
	}))
	wantProblem(t, err, runtime.ReasonBadCommand, "image "+bare+" has no entrypoint and no command: set command or args")
}
