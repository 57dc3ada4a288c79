package docker

import (
	"errors"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// of makes a container of another image.
func (e *env) of(tag string) func(*pods.ContainerSpec) {
	return func(s *pods.ContainerSpec) {
		s.Main.Image = tag
		s.Image = must(e.Image(e.t.Context(), tag))(e.t)
	}
}

func TestFilesBelongToWhomTheContainerRunsAs(t *testing.T) {
	t.Parallel()
	needRoot(t)
	e := newEnv(t)
	for i, c := range []struct {
		name, image, user string
		own               []jobspecs.File
		want              string
	}{
		{"a name", passwdImage(t), "redis", nil, "999:998"},
		{"the image's user by name", userImage(t), "", nil, "999:998"},
		{"a name and a group", passwdImage(t), "redis:staff", nil, "999:50"},
		{"a number and a group", passwdImage(t), "5:staff", nil, "5:50"},
		{"a name of the spec's own passwd", passwdImage(t), "web", []jobspecs.File{
			{Path: "/etc/passwd", Content: []byte("web:x:77:78::/:\n"), Mode: 0o644, Owner: "0:0"},
		}, "77:78"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := e.spec("web", i, e.of(c.image), func(s *pods.ContainerSpec) {
				s.Main.User = c.user
				s.Main.Files = append(c.own,
					jobspecs.File{Path: "/etc/web/conf", Content: []byte("plain "), Mode: 0o400},
					jobspecs.File{Path: "/etc/web/key", Content: []byte("secret"), Mode: 0o400, Sensitive: true},
					jobspecs.File{Path: "/etc/web/root", Mode: 0o400, Owner: "0:0"})
			})
			e.run(s)
			want := "/etc/web/conf 400 " + c.want + "\n/etc/web/key 400 " + c.want + "\n/etc/web/root 400 0:0\n"
			if got := e.in(s.Pod.Name, "stat", "/etc/web/conf", "/etc/web/key", "/etc/web/root"); got != want {
				t.Errorf("got:\n%swant:\n%s", got, want)
			}
			if got := e.in(s.Pod.Name, "cat", "/etc/web/conf", "/etc/web/key"); got != "plain secret" {
				t.Errorf("its user reads %q", got)
			}
			_, kept := e.accounts.Load(account{s.Image.ID, userOf(&s)})
			if kept != (c.own == nil) {
				t.Errorf("remembered: %v", kept)
			}
		})
	}
}

func TestAUserThatTheImageDoesNotHave(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	conf := files(jobspecs.File{Path: "/conf", Mode: 0o400})
	for i, c := range []struct {
		name, user, want string
		files            func(*pods.ContainerSpec)
	}{
		{"with files", "nobody", `user = "nobody": the image has no such user`, conf},
		{"with files, a group", "redis:wheel", `user = "redis:wheel": the image has no such group`, conf},
		{"the engine says it", "nobody", `user = "nobody": the image has no such user`, files()},
		{"the engine says it, a group", "redis:wheel", `user = "…:wheel": the image has no such group`, files()},
	} {
		s := e.spec("web", i, e.of(passwdImage(t)), c.files, func(s *pods.ContainerSpec) { s.Main.User = c.user })
		id, err := e.Create(t.Context(), s)
		if err == nil {
			err = e.Start(t.Context(), id)
		}
		t.Log(c.name)
		wantProblem(t, err, runtime.ReasonBadCommand, c.want)
	}
}

func TestNothingRunsInWhatDoesNotRun(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	exec := func(want string, sentinel error) {
		t.Helper()
		_, err := e.Exec(t.Context(), e.pod("web-0"), quiet("/helper", "exit", "0"))
		if !errors.Is(err, sentinel) || errorText(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	who := e.ns + "/web-0"
	id := must(e.Create(t.Context(), e.spec("web", 0)))(t)
	exec(who+`: container "web" is not running: it was not started yet`, runtime.ErrNotRunning)
	check(t, e.Start(t.Context(), id))
	check(t, raw().ContainerPause(t.Context(), id))
	exec(who+`: container "web" is paused`, runtime.ErrNotRunning)
	check(t, raw().ContainerUnpause(t.Context(), id))
	check(t, e.Stop(t.Context(), id, "SIGKILL", time.Second))
	exec(who+`: container "web" is not running: it ended with exit code 137`, runtime.ErrNotRunning)
	_, err := e.Check(t.Context(), pods.Target{ID: id}, jobspecs.Probe{Exec: []string{"x"}})
	if got, want := errorText(err), "exec x: the container is not running"; got != want {
		t.Errorf("a probe says %q, want %q", got, want)
	}
	check(t, e.Remove(t.Context(), id))
	exec(who+": no such pod", runtime.ErrNotFound)
}

// It may go between the look for it and what is done with it.
func TestAContainerThatWentMeanwhileIsNotFound(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	id := must(e.Create(t.Context(), e.spec("web", 0)))(t)
	check(t, e.Remove(t.Context(), id))
	pod, who := e.pod("web-0"), e.ns+"/web-0"
	_, err := e.exec(t.Context(), id, container.ExecOptions{Cmd: []string{"x"}}, streams{})
	for got, want := range map[error]string{
		e.explainStopped(t.Context(), pod, id, err):                                     who + ": the container is gone",
		e.noLogs(t.Context(), pod, id, errString("Error grabbing logs: EOF")):           who + ": the container is gone, and its logs with it",
		e.noLogs(t.Context(), pod, id, errString("dead or marked for removal: abc123")): who + ": the container is gone, and its logs with it",
		err: "the container is gone",
	} {
		if !errors.Is(got, runtime.ErrNotFound) || got.Error() != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

func TestAFileOfAContainerMayBeALink(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	id := e.run(e.spec("web", 0, e.of(passwdImage(t))))
	e.in("web-0", "swap", "/noexec", "../etc/group")
	e.in("web-0", "swap", "/data/seed", "/nowhere")
	for path, want := range map[string]string{
		"/etc/group": "root:x:0:\nstaff:x:50:\n",
		"/noexec":    "root:x:0:\nstaff:x:50:\n",
		"/data/seed": "",
		"/etc":       "",
		"/nothing":   "",
	} {
		if got := must(e.readSmall(t.Context(), id, path))(t); got != want {
			t.Errorf("%s has %q, want %q", path, got, want)
		}
	}
}

func TestWhatEnginesSayOfWhatDoesNotRun(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Error response from daemon: Container 3f is not running":                                 "the container is not running",
		"Error response from daemon: container 3f is not running":                                 "the container is not running",
		"Container 3f is paused, unpause the container before exec":                               "the container is paused",
		"Container 3f is restarting, wait until the container is running":                         "the container is not running",
		"OCI runtime exec failed: cannot exec in a stopped container: unknown":                    "the container is not running",
		"OCI runtime exec failed: exec failed: cannot exec a container that has stopped: unknown": "the container is not running",
	} {
		if err := execError(errString(text)); !errors.Is(err, runtime.ErrNotRunning) || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := execError(errString("no space left on device")); errors.Is(err, runtime.ErrNotRunning) || err.Error() != "no space left on device" {
		t.Errorf("about something else: %v", err)
	}
}
