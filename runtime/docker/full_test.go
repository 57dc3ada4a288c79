package docker

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// A container with every field of its spec, looked at from inside.
func TestEveryFieldReachesTheContainer(t *testing.T) {
	t.Parallel()
	needRoot(t)
	e := newEnv(t)
	host := t.TempDir()
	check(t, os.WriteFile(host+"/cert", []byte("of the host"), 0o644))
	port := freePort(t)
	s := e.fresh(0, "/data", func(s *pods.ContainerSpec) {
		podOf2(s)
		s.Pod.ShareProcesses = false
		s.Pod.Labels = map[string]string{"team": "shop"}
		m := &s.Main
		m.Mounts = append(m.Mounts,
			jobspecs.Mount{Kind: jobspecs.MountVolume, Claim: "data", Volume: s.Pod.Volumes[0].Name, Path: "/data"},
			jobspecs.Mount{Kind: jobspecs.MountVolume, Claim: "data", Volume: s.Pod.Volumes[0].Name, Path: "/part", SubPath: "part"},
			jobspecs.Mount{Kind: jobspecs.MountBind, Claim: "certs", Source: host, Path: "/certs", ReadOnly: true})
		m.Command, m.Args = []string{"/helper"}, []string{"serve", "8080"}
		m.Env = map[string]string{"A": "1", "FROM": "spec"}
		m.User, m.WorkingDir, m.StopSignal = "1000:1001", "/data", "SIGUSR1"
		m.Ports = []jobspecs.Port{{Name: "http", Container: 8080, Protocol: "tcp", Host: port}}
		m.Files = []jobspecs.File{
			{Path: "/etc/plain", Content: []byte("plain"), Mode: 0o640},
			{Path: "/etc/key", Content: []byte("secret"), Mode: 0o400, Sensitive: true},
			{Path: "/data/inside", Content: []byte("inside"), Mode: 0o600, Owner: "1000:7"},
		}
		m.Ulimits = []jobspecs.Ulimit{{Name: "nofile", Soft: 200, Hard: 200}, {Name: "core", Soft: -1, Hard: -1}}
		m.Log = &jobspecs.Log{Driver: "json-file", Options: map[string]string{"max-size": "1m"}}
		m.CPU, m.Memory, m.MemoryReservation, m.PIDs, m.ShmSize = 0.5, 64<<20, 32<<20, 100, 2<<20
		m.ReadOnlyRoot, m.NoNewPrivileges, m.RunAsNonRoot, m.FSGroup = true, true, true, pointer(2000)
		m.CapDrop, m.CapAdd = []string{"ALL"}, []string{"NET_BIND_SERVICE"}
	})
	id := e.run(s)
	for words, want := range map[string]string{
		"id":                               "1000 1001 [1001 2000]\n",
		"names":                            "web-0 " + s.Pod.Domain + " web-0." + s.Pod.Domain + "\n",
		"limit open":                       "Max open files 200 200 files\n",
		"limit core":                       "Max core file size unlimited unlimited bytes\n",
		"limit NoNewPrivs":                 "NoNewPrivs: 1\n",
		"limit CapBnd":                     "CapBnd: 0000000000000400\n",
		"size /dev/shm /tmp":               "/dev/shm 2097152\n/tmp 1048576\n",
		"cat /etc/plain":                   "plain",
		"cat /etc/key":                     "secret",
		"cat /data/inside":                 "inside",
		"cat /certs/cert":                  "of the host",
		"stat /etc/plain /etc/key":         "/etc/plain 640 1000:1001\n/etc/key 400 1000:1001\n",
		"stat /data/inside":                "/data/inside 600 1000:7\n",
		"stat /data /part":                 "/data 2770 999:2000\n/part 2775 1000:2000\n",
		"stat /tmp /work":                  "/tmp 3777 0:2000\n/work 3777 0:2000\n",
		"cat /proc/sys/net/core/somaxconn": "1000\n",
	} {
		if got := e.in("web-0", strings.Fields(words)...); got != want {
			t.Errorf("%s: got %q, want %q", words, got, want)
		}
	}
	if got := e.in("web-0", "env"); !strings.Contains(got, "A=1\n") || !strings.Contains(got, "FROM=spec\n") {
		t.Errorf("env = %q", got)
	}
	for _, path := range []string{"/data/w", "/part/w", "/work/w", "/tmp/w", "/dev/shm/w"} {
		e.in("web-0", "write", path, "w")
	}
	if answer(t, fmt.Sprintf("http://127.0.0.1:%d", port)) == "" {
		t.Error("nobody answers at the published port")
	}
	c := must(raw().ContainerInspect(t.Context(), id))(t)
	got := fmt.Sprintln(c.HostConfig.NanoCPUs, c.HostConfig.Memory, c.HostConfig.MemoryReservation, *c.HostConfig.PidsLimit,
		c.HostConfig.LogConfig.Type, c.HostConfig.LogConfig.Config["max-size"], c.Config.Labels["team"], c.Config.StopSignal, c.Config.WorkingDir)
	want := "500000000 67108864 33554432 100 json-file 1m shop SIGUSR1 /data\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	check(t, e.Stop(t.Context(), id, "", 2*time.Second))
	check(t, e.Remove(t.Context(), id))
}

func TestPrivilegedContainer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	id := must(e.Create(t.Context(), e.spec("web", 0, func(s *pods.ContainerSpec) { s.Main.Privileged = true })))(t)
	if c := must(raw().ContainerInspect(t.Context(), id))(t); !c.HostConfig.Privileged {
		t.Error("the engine was not asked for a privileged container")
	}
	err := e.Start(t.Context(), id)
	if err != nil {
		wantProblem(t, err, runtime.ReasonCreateFailed, "privileged: this engine has not all capabilities itself, and so cannot give them")
		t.Skip("the engine itself has not all capabilities")
	}
	if got := e.in("web-0", "ls", "/dev"); !strings.Contains(got, "kmsg\n") {
		t.Errorf("devices: %q", got)
	}
}

func TestGPUsWhereThereAreNone(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	id, err := e.Create(t.Context(), e.spec("web", 0, func(s *pods.ContainerSpec) { s.Main.GPUs = "all" }))
	check(t, err)
	err = e.Start(t.Context(), id)
	if err == nil {
		t.Skip("this host has GPUs")
	}
	wantProblem(t, err, runtime.ReasonCreateFailed, `this engine has no driver for gpus = "all"`)
}
