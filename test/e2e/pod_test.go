package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
)

// several is a pod with an init container, a sidecar, two mains and a volume on
// which every hook writes why it was called.
const several = `
statefulset "db" {
  replicas          = 1
  termination_grace = "20s"

  volume "data" {
  }
  scratch "shared" {
    medium = "memory"
    size   = "1MiB"
  }

  init "prepare" {
    image   = "busybox:1"
    command = ["sh", "-c", "echo prepared >> /data/log"]
    mount "data" {
      path = "/data"
    }
  }
  sidecar "helper" {
    image   = "busybox:1"
    command = ["sh", "-c", "trap 'exit 0' TERM; echo helper > /shared/file; nc -ll -p 7000 -e echo hello & while :; do sleep 0.1; done"]
    mount "shared" {
      path = "/shared"
    }
    probe "startup" {
      tcp {
        port = 7000
      }
      period = "200ms"
    }
  }
  container "main" {
    image   = "busybox:1"
    command = ["sh", "-c", "trap 'exit 0' TERM; echo main ${var.word} >> /data/log; while :; do sleep 0.1; done"]
    mount "data" {
      path = "/data"
    }
    mount "shared" {
      path = "/shared"
    }
    lifecycle {
      post_start {
        exec {
          command = ["sh", "-c", "echo post_start $STSD_REASON >> /data/log"]
        }
      }
      pre_stop {
        exec {
          command = ["sh", "-c", "echo pre_stop $STSD_REASON >> /data/log"]
        }
      }
    }
  }
  container "second" {
    image   = "busybox:1"
    command = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]
  }
}
variable "word" {
  default = "one"
}
`

// part is a container of a member at the engine.
func (w *world) part(member, block string) container.InspectResponse {
	w.t.Helper()
	c, err := engine().ContainerInspect(w.t.Context(), jobspecs.ContainerName(w.ns, member, block))
	w.check(err)
	return c
}

func (w *world) wantLog(member string, want ...string) {
	w.t.Helper()
	w.await("the log of "+member, func() error {
		got := strings.Fields(strings.ReplaceAll(w.stsd("exec", member, "--", "cat", "/data/log").out, " ", "_"))
		if !slices.Equal(got, want) {
			return fmt.Errorf("log = %q, want %q", got, want)
		}
		return nil
	})
}

func TestTheContainersOfAPodShareAndEndInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := w.file("db.hcl", several)
	w.ok("apply", "--timeout", patience.String(), file)
	w.wantLog("db-0", "prepared", "main_one", "post_start_start")
	address := w.address0("db-0")

	w.prints("hello\n", "exec", "db-0", "-c", "second", "--", "sh", "-c", "nc 127.0.0.1 7000 < /dev/null")
	w.prints("helper\n", "exec", "db-0", "--", "cat", "/shared/file")
	for _, c := range []string{"main", "second", "helper"} {
		w.prints("db-0\n", "exec", "db-0", "-c", c, "--", "hostname")
		w.prints("db-0.db."+w.ns+".svc.cluster.local\n", "exec", "db-0", "-c", c, "--", "hostname", "-f")
	}

	// The end of one leaves the others, and the address, alone.
	sandbox, main := w.part("db-0", "sandbox").ID, w.part("db-0", "").ID
	second := w.part("db-0", "second").ID
	w.check(engine().ContainerKill(t.Context(), second, "KILL"))
	w.await("second to be made again", func() error {
		c, err := engine().ContainerInspect(t.Context(), jobspecs.ContainerName(w.ns, "db-0", "second"))
		if err != nil || c.ID == second || !c.State.Running {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	w.settled("db", 1)
	if w.part("db-0", "sandbox").ID != sandbox || w.part("db-0", "").ID != main || w.address0("db-0") != address {
		t.Error("the end of one container touched the others")
	}

	// A sandbox that dies takes the pod with it; the whole pod begins again.
	w.check(engine().ContainerKill(t.Context(), sandbox, "KILL"))
	w.wantLog("db-0", "prepared", "main_one", "post_start_start", "pre_stop_restart", "prepared", "main_one", "post_start_restart")
	w.settled("db", 1)
	if w.address0("db-0") != address {
		t.Errorf("address = %s, want %s", w.address0("db-0"), address)
	}

	// An update says so to the hook.
	w.ok("apply", "--timeout", patience.String(), "--var", "word=two", file)
	w.wantLog("db-0", "prepared", "main_one", "post_start_start", "pre_stop_restart", "prepared", "main_one", "post_start_restart",
		"pre_stop_update", "prepared", "main_two", "post_start_start")

	// The daemon may come and go.
	ids := []string{w.part("db-0", "sandbox").ID, w.part("db-0", "").ID, w.part("db-0", "helper").ID, w.part("db-0", "second").ID}
	w.kill()
	w.start()
	w.settled("db", 1)
	for i, block := range []string{"sandbox", "", "helper", "second"} {
		if w.part("db-0", block).ID != ids[i] {
			t.Errorf("container %q was made anew by a restart of the daemon", block)
		}
	}
	w.wantLog("db-0", "prepared", "main_one", "post_start_start", "pre_stop_restart", "prepared", "main_one", "post_start_restart",
		"pre_stop_update", "prepared", "main_two", "post_start_start")
	w.ok("delete", "db", "--yes", "--wait", "--timeout", patience.String())
	w.noContainers()
}

// address0 is where a member answers, whichever container holds it.
func (w *world) address0(m string) string {
	w.t.Helper()
	for _, p := range decode[[]member](w, "ps", m) {
		return p.IP
	}
	return ""
}

// noContainers waits until nothing of the test runs or is kept.
func (w *world) noContainers() {
	w.t.Helper()
	w.await("every container to be gone", func() error {
		list, err := engine().ContainerList(w.t.Context(), container.ListOptions{All: true, Filters: labelled(w.id)})
		if err != nil || len(list) > 0 {
			return fmt.Errorf("%d containers, %v", len(list), err)
		}
		return nil
	})
}

func TestAPodWithOneContainerHasNoSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok("apply", "--timeout", patience.String(), w.file("one.hcl", `
statefulset "one" {
  replicas          = 1
  termination_grace = "1s"
  init "prepare" {
    image   = "busybox:1"
    command = ["true"]
  }
  container "main" {
    image   = "busybox:1"
    command = ["sleep", "1000"]
  }
}
`))
	list, err := engine().ContainerList(t.Context(), container.ListOptions{All: true, Filters: labelled(w.id)})
	w.check(err)
	var names []string
	for _, c := range list {
		names = append(names, strings.TrimPrefix(c.Names[0], "/"))
	}
	slices.Sort(names)
	want := []string{w.ns + ".one-0", w.ns + ".one-0_prepare"}
	if !slices.Equal(names, want) {
		t.Errorf("containers = %q, want %q", names, want)
	}
}

// What a test knows and nobody may find.
const (
	password = "hunter2-correct-horse-battery"
	tokenVar = "zebra-token-5551212"
)

func TestSecretsLeakNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := w.file("vault.hcl", `
variable "password" {
  sensitive = true
}
variable "token" {
  sensitive = true
  type      = string
}
secret "cookie" {
  length = 24
}
statefulset "vault" {
  replicas          = 1
  termination_grace = "1s"
  container "main" {
    image   = "busybox:1"
    command = ["sleep", "1000"]
    file "/etc/vault.conf" {
      sensitive = true
      mode      = "0400"
      content   = <<-EOT
        password = ${var.password}
        token    = ${base64encode(var.token)}
        cookie   = ${secret.cookie}
        member   = ${self.name}
      EOT
    }
  }
}
`)
	w.ok("apply", "--timeout", patience.String(), "--var", "password="+password, "--var", "token="+tokenVar, spec)
	conf := w.ok("exec", "vault-0", "--", "cat", "/etc/vault.conf")
	if !strings.Contains(conf, "password = "+password) || !strings.Contains(conf, "member   = vault-0") {
		t.Fatalf("the file is %q", conf)
	}
	cookie := ""
	for line := range strings.Lines(conf) {
		if k, v, _ := strings.Cut(line, "="); strings.TrimSpace(k) == "cookie" {
			cookie = strings.TrimSpace(v)
		}
	}
	if len(cookie) < 24 {
		t.Fatalf("the cookie is %q", cookie)
	}
	if fs := w.ok("exec", "vault-0", "--", "sh", "-c", "grep vault.conf /proc/mounts"); !strings.Contains(fs, "tmpfs") {
		t.Errorf("the file is not in memory: %s", fs)
	}
	secrets := []string{password, tokenVar, cookie, "emVicmEtdG9rZW4tNTU1MTIxMg"}

	// The machine boots: containers are down, memory is empty.
	id := w.part("vault-0", "").ID
	w.terminate()
	zero := 0
	w.check(engine().ContainerStop(t.Context(), id, container.StopOptions{Timeout: &zero}))
	w.emptyRun()
	w.start()
	w.settled("vault", 1)
	if again := w.ok("exec", "vault-0", "--", "cat", "/etc/vault.conf"); again != conf {
		t.Errorf("after a boot the file is %q, want %q", again, conf)
	}

	// Not given again, they keep their values; another one rolls.
	w.ok("apply", "--timeout", patience.String(), spec)
	w.prints(conf, "exec", "vault-0", "--", "cat", "/etc/vault.conf")
	said := map[string]string{"the log": w.logTail()}
	for _, args := range [][]string{
		{"plan", "--var", "password=another-" + password, spec}, {"diff", "--var", "password=another-" + password, spec},
		{"status", "vault", "-o", "json"}, {"ps", "-o", "json"}, {"explain", "vault-0"}, {"events", "-o", "json"},
		{"rollout", "history", "vault", "-o", "json"}, {"rollout", "history", "vault", "--revision", "1"}, {"secret", "ls"}, {"secret", "ls", "-o", "json"},
		{"validate", "--var", "password=" + password, spec}, {"logs", "vault-0"},
	} {
		r := w.stsd(args...)
		said[strings.Join(args[:min(2, len(args))], " ")] = r.out + r.err
	}
	said["inspect"] = docker(t, "inspect", w.container("vault-0"))
	for where, text := range said {
		w.hides(where, text, secrets)
	}
	w.hidesInFolder(w.state(), secrets)
	root := strings.TrimSpace(docker(t, "info", "--format", "{{.DockerRootDir}}"))
	now := w.part("vault-0", "").ID
	w.hidesInFolder(filepath.Join(root, "containers", now), secrets)
	if upper := w.part("vault-0", "").GraphDriver.Data["UpperDir"]; upper != "" {
		w.hidesInFolder(upper, secrets)
	}
}

// emptyRun takes away what is in memory, as a boot does.
func (w *world) emptyRun() {
	w.t.Helper()
	run := filepath.Join(w.dir, "run")
	_ = syscall.Unmount(filepath.Join(run, "memory"), 0) // not there where the folder itself is in memory
	w.check(os.RemoveAll(run))
}

func (w *world) hides(where, text string, secrets []string) {
	w.t.Helper()
	for _, s := range secrets {
		if strings.Contains(text, s) {
			w.t.Errorf("%s shows a secret", where)
		}
	}
}

func (w *world) hidesInFolder(dir string, secrets []string) {
	w.t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // one that went meanwhile holds nothing
		}
		text, err := os.ReadFile(path)
		if err == nil {
			n++
			w.hides(path, string(text), secrets)
		}
		return nil
	})
	w.check(err)
	if n == 0 {
		w.t.Logf("no file in %s", dir)
	}
}

func TestWhatEveryMemberFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok("apply", "--timeout", patience.String(), w.file("find.hcl", `
statefulset "find" {
  replicas          = 1
  termination_grace = "1s"
  volume "own" {
  }
  volume "group" {
  }
  container "main" {
    image   = "busybox:1"
    user    = "1234:1234"
    command = ["sleep", "1000"]
    mount "own" {
      path = "/own"
    }
    mount "group" {
      path     = "/group"
      sub_path = "a/b"
    }
    security {
      fs_group       = 4321
      read_only_root = true
    }
    file "/etc/app/conf" {
      content = "in the root"
      owner   = "1234:1234"
      mode    = "0400"
    }
    file "/own/conf/inside" {
      content = "in the volume"
    }
    file "/etc/app/large" {
      content = join("", [for i in range(1000) : "${join("", [for j in range(100) : "0123456789012345678901234567890123456789012345678"])}\n"])
    }
  }
}
`))
	long := "find." + w.ns + ".svc.cluster.local"
	for command, want := range map[string]string{
		"hostname":                     "find-0\n",
		"hostname -s":                  "find-0\n",
		"hostname -d":                  long + "\n",
		"hostname -f":                  "find-0." + long + "\n",
		"hostname -i":                  w.address0("find-0") + "\n",
		"id -u; id -g":                 "1234\n1234\n",
		"touch /own/x && echo written": "written\n",
		"touch /group/x && echo too":   "too\n",
		"cat /etc/app/conf":            "in the root",
		"cat /own/conf/inside":         "in the volume",
		"wc -c < /etc/app/large":       "4901000\n",
		"grep -c find-0 /etc/hosts":    "1\n",
	} {
		if got := w.ok("exec", "find-0", "--", "sh", "-c", command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	w.fails(1, nil, "exec", "find-0", "--", "sh", "-c", "touch /etc/app/x")
}

// Whatever is wrong with one pod is said, and disturbs nobody else.
func TestBadPodsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pod := func(name, inSet, inContainer string) string {
		return fmt.Sprintf("statefulset %q {\n  replicas = 1\n  termination_grace = \"2s\"\n%s\n  container \"main\" {\n    image = \"busybox:1\"\n%s\n  }\n}\n", name, inSet, inContainer)
	}
	sleeps := "    command = [\"sleep\", \"1000\"]\n"
	cases := []struct {
		name, text string
		words      []string
	}{
		{"noport", pod("noport", "", sleeps+"    probe \"readiness\" {\n      tcp {\n        port = 9999\n      }\n      period = \"1s\"\n    }"), []string{"9999", "connection refused"}},
		{"endless", pod("endless", "  init \"wait\" {\n    image = \"busybox:1\"\n    command = [\"sleep\", \"1000\"]\n  }", sleeps), []string{"init wait", "stsd logs"}},
		{"failing", pod("failing", "  init \"check\" {\n    image = \"busybox:1\"\n    command = [\"sh\", \"-c\", \"echo no luck; exit 7\"]\n  }", sleeps), []string{"exit code 7", "init check", "-c check"}},
		{"hanging", pod("hanging", "", sleeps+"    probe \"readiness\" {\n      exec {\n        command = [\"sh\", \"-c\", \"sleep 300 & sleep 300\"]\n      }\n      period = \"1s\"\n      timeout = \"1s\"\n    }"), []string{"timed out"}},
		{"poststart", pod("poststart", "", sleeps+"    lifecycle {\n      post_start {\n        exec {\n          command = [\"sleep\", \"1000\"]\n        }\n      }\n    }"), []string{"post_start"}},
		{"badhook", pod("badhook", "", sleeps+"    lifecycle {\n      post_start {\n        exec {\n          command = [\"sh\", \"-c\", \"exit 3\"]\n        }\n      }\n    }"), []string{"post_start", "exit code 3"}},
		{"nocommand", pod("nocommand", "", "    command = [\"/no/such/program\"]\n"), []string{"/no/such/program"}},
		{"wrongarch", strings.Replace(pod("wrongarch", "", ""), "busybox:1", "stsd-test-arch:"+w.ns, 1), []string{"linux/s390x"}},
		{"noentry", strings.Replace(pod("noentry", "", ""), "busybox:1", "stsd-test-noentry:"+w.ns, 1), []string{"no entrypoint and no command"}},
		{"root", pod("root", "", sleeps+"    security {\n      run_as_non_root = true\n    }"), []string{"root"}},
		{"nobind", pod("nobind", "  bind \"x\" {\n    source = \"/no/such/folder\"\n  }", sleeps+"    mount \"x\" {\n      path = \"/x\"\n    }"), []string{"/no/such/folder"}},
	}
	w.loadImage("stsd-test-arch:"+w.ns, "s390x", []string{"/program"})
	w.loadImage("stsd-test-noentry:"+w.ns, runtime.GOARCH, nil)
	good := w.file("good.hcl", pod("good", "", sleeps))
	w.ok("apply", "--timeout", patience.String(), good)
	before := w.part("good-0", "").ID
	for _, c := range cases {
		w.ok("apply", "--detach", w.file(c.name+".hcl", c.text))
	}
	for _, c := range cases {
		w.explains(c.name+"-0", c.words...)
		w.await("ps and events to name the cause of "+c.name, func() error {
			for _, r := range []result{w.stsd("ps", c.name, "-o", "json"), w.stsd("events", c.name)} {
				if !strings.Contains(r.out, c.words[0]) {
					return fmt.Errorf("%q is not said: %v", c.words[0], r)
				}
			}
			return nil
		})
	}
	// One probe has three processes, the question itself two; dozens of probes have been sent.
	left, err := strconv.Atoi(strings.TrimSpace(docker(t, "exec", w.container("hanging-0"), "sh", "-c", "ps | grep -c 'sleep 300' || true")))
	w.check(err)
	if left > 20 {
		t.Errorf("%d processes of probes that timed out are left", left)
	}
	for _, c := range cases {
		w.ok("delete", c.name, "--yes", "--wait", "--timeout", patience.String())
	}
	if w.part("good-0", "").ID != before {
		t.Error("a bad pod disturbed a good one")
	}
}

func TestAContainerThatIgnoresItsStopSignalIsKilledAtTheEndOfItsGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok("apply", "--timeout", patience.String(), w.file("deaf.hcl", `
statefulset "deaf" {
  replicas          = 1
  termination_grace = "2s"
  container "main" {
    image   = "busybox:1"
    command = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
    lifecycle {
      pre_stop {
        exec {
          command = ["sleep", "1000"]
        }
      }
    }
  }
}
`))
	began := time.Now()
	w.ok("delete", "deaf", "--yes", "--wait", "--timeout", patience.String())
	t.Logf("took %s", time.Since(began).Round(100*time.Millisecond))
	w.await("events to tell", func() error {
		out := w.ok("events", "-o", "json")
		for _, word := range []string{"FailedPreStopHook", "Killed"} {
			if !strings.Contains(out, word) {
				return fmt.Errorf("%q is not said: %s", word, out)
			}
		}
		return nil
	})
}

// A spec that uses every field of the language runs.
func TestASpecWithEveryFieldRuns(t *testing.T) {
	t.Parallel()
	needs(t, "busybox:1", "redis:7")
	app, edge := userNetwork(t), userNetwork(t)
	w := newWorld(t)
	text, err := os.ReadFile("../../jobspecs/hcl/testdata/full.hcl")
	w.check(err)
	w.ok("apply", "--timeout", patience.String(), w.file("config.hcl", `
statefulset "config" { # what the spec starts after
  replicas          = 1
  termination_grace = "1s"
  container "main" {
    image   = "busybox:1"
    command = ["sleep", "1000"]
  }
}
`))
	spec := strings.NewReplacer(
		`namespace              = "full"`, fmt.Sprintf("namespace = %q", w.ns), `"myapp_default"`, strconv.Quote(app), `"edge"`, strconv.Quote(edge),
	).Replace(string(text))
	w.ok("apply", "--timeout", patience.String(), "--var", "password=x", w.file("full.hcl", spec))
}
