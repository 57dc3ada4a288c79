package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// summaryOf is a container of member ns/web-0 as the engine lists it.
func summaryOf(name, block, kind string) container.Summary {
	return container.Summary{ID: name, Names: []string{"/" + name}, Labels: map[string]string{
		jobspecs.LabelContainer: block, jobspecs.LabelKind: kind,
	}}
}

func TestContainerOfAPodIsFound(t *testing.T) {
	t.Parallel()
	pod := runtime.PodName{Namespace: "prod", Name: "web-0"}
	small := []container.Summary{summaryOf("prod.web-0", "web", ""), summaryOf("prod.web-0_previous", "web", "")}
	copied := summaryOf("copy", "web", "")
	copied.Created = 1
	big := []container.Summary{
		summaryOf("prod.web-0_sandbox", "", jobspecs.KindSandbox),
		summaryOf("prod.web-0_prepare", "prepare", jobspecs.KindInit),
		summaryOf("prod.web-0_exporter_previous", "exporter", jobspecs.KindSidecar),
		summaryOf("prod.web-0_exporter", "exporter", jobspecs.KindSidecar),
		summaryOf("prod.web-0", "web", jobspecs.KindMain),
		{ID: "being removed", Labels: map[string]string{jobspecs.LabelContainer: "old"}},
	}
	for _, c := range []struct {
		name      string
		there     []container.Summary
		container string
		previous  bool
		want      string
	}{
		{"the pod's own", small, "", false, "prod.web-0"},
		{"the pod's own by its block", small, "web", false, "prod.web-0"},
		{"the last ended one", small, "", true, "prod.web-0_previous"},
		{"the last ended one by its block", small, "web", true, "prod.web-0_previous"},
		{"the pod's own of many", big, "", false, "prod.web-0"},
		{"an init container", big, "prepare", false, "prod.web-0_prepare"},
		{"a sidecar", big, "exporter", false, "prod.web-0_exporter"},
		{"the last ended one of a sidecar", big, "exporter", true, "prod.web-0_exporter_previous"},
		{"the pod's own, renamed by hand", []container.Summary{summaryOf("mine", "web", ""), summaryOf("prod.web-0_exporter", "exporter", jobspecs.KindSidecar)}, "", false, "mine"},
		{"the pod's own beside a newer copy", []container.Summary{summaryOf("prod.web-0", "web", ""), copied}, "", false, "prod.web-0"},
		{"and by its block", []container.Summary{summaryOf("prod.web-0", "web", ""), copied}, "web", false, "prod.web-0"},
		{"one of two mains, renamed by hand", []container.Summary{summaryOf("mine", "web", jobspecs.KindMain), summaryOf("prod.web-0_db", "db", jobspecs.KindMain)}, "", false,
			"prod/web-0 has no container now"},
		{"unknown", big, "nope", false, `prod/web-0 has no container "nope": it has exporter, old, prepare, web`},
		{"unknown, the last ended one", big, "nope", true, `prod/web-0 has no container "nope": it has exporter, old, prepare, web`},
		{"nothing ended", big, "", true, `prod/web-0 has no ended container before this one`},
		{"nothing ended of a block", big, "prepare", true, `prod/web-0 has no ended container before this one of "prepare"`},
		{"the sandbox is stsd's", big[:1], "", false, `prod/web-0: no such pod`},
		{"between two containers", small[1:], "", false, `prod/web-0 has no container now`},
		{"between two containers of a block", small[1:], "web", false, `prod/web-0 has no container now of "web"`},
		{"no pod", nil, "", false, `prod/web-0: no such pod`},
	} {
		var all []part
		for _, s := range c.there {
			all = append(all, partOf(pod, s))
		}
		got, err := pick(pod, all, c.container, c.previous)
		if err != nil {
			got = err.Error()
		}
		if got != c.want || err != nil && !errors.Is(err, runtime.ErrNotFound) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// podContainer makes and starts one of member web-0, as an agent would name it.
func (e *env) podContainer(t *testing.T, part, kind, block string, cmd ...string) (id string) {
	t.Helper()
	made := must(raw().ContainerCreate(t.Context(), &container.Config{Image: e.image, Cmd: cmd, Labels: map[string]string{
		jobspecs.LabelDaemon: e.cfg.Daemon, jobspecs.LabelNamespace: e.ns, jobspecs.LabelSet: "web", jobspecs.LabelOrdinal: "0",
		jobspecs.LabelContainer: block, jobspecs.LabelKind: kind,
	}}, &container.HostConfig{NetworkMode: "none"}, nil, nil, jobspecs.ContainerName(e.ns, "web-0", part)))(t)
	check(t, raw().ContainerStart(t.Context(), made.ID, container.StartOptions{}))
	return made.ID
}

func TestLogsAndExecOfEveryContainerOfAPod(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.podContainer(t, "sandbox", jobspecs.KindSandbox, "", "sleep")
	check(t, e.waitEnded(t.Context(), e.podContainer(t, "prepare", jobspecs.KindInit, "prepare", "exit", "0", "prepared")))
	check(t, e.waitEnded(t.Context(), e.podContainer(t, "exporter_previous", jobspecs.KindSidecar, "exporter", "exit", "1", "exporter broke")))
	e.podContainer(t, "exporter", jobspecs.KindSidecar, "exporter", "say", "exporting")
	e.podContainer(t, "", jobspecs.KindMain, "web", "say", "serving")
	e.hears(t, "web-0", "serving")

	for _, c := range []struct {
		container string
		previous  bool
		want      string
	}{
		{"", false, "serving\n"},
		{"web", false, "serving\n"},
		{"prepare", false, "first line\nprepared\n"},
		{"exporter", true, "first line\nexporter broke\n"},
	} {
		var out bytes.Buffer
		check(t, e.Logs(t.Context(), e.pod("web-0"), runtime.LogOptions{Container: c.container, Previous: c.previous}, &out, &out))
		if out.String() != c.want {
			t.Errorf("logs of %q, previous %v: %q, want %q", c.container, c.previous, &out, c.want)
		}
	}
	err := e.Logs(t.Context(), e.pod("web-0"), runtime.LogOptions{Container: "nope"}, nil, nil)
	if want := e.ns + `/web-0 has no container "nope": it has exporter, prepare, web`; errorText(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}

	for _, c := range []struct{ container, want string }{
		{"", "0 <nil> serving"}, {"web", "0 <nil> serving"}, {"exporter", "0 <nil> exporting"},
	} {
		var out bytes.Buffer
		code, err := e.Exec(t.Context(), e.pod("web-0"), runtime.ExecOptions{
			Container: c.container, Command: []string{"/helper", "cat", "/proc/1/cmdline"}, Stdout: &out, Stderr: &out,
		})
		words := strings.Split(strings.TrimRight(out.String(), "\x00"), "\x00")
		if got := fmt.Sprint(code, err, " ", words[len(words)-1]); got != c.want {
			t.Errorf("exec in %q: %s, want %s", c.container, got, c.want)
		}
	}
	_, err = e.Exec(context.Background(), e.pod("web-0"), runtime.ExecOptions{Container: "prepare", Command: []string{"/helper", "env"}})
	if got, want := errorText(err), e.ns+`/web-0: container "prepare" is not running: it ended with exit code 0`; got != want || !errors.Is(err, runtime.ErrNotRunning) {
		t.Errorf("exec in an ended container: %s, want %s", got, want)
	}
	if _, err := e.Exec(t.Context(), e.pod("no member"), runtime.ExecOptions{}); !errors.Is(err, runtime.ErrNotFound) {
		t.Errorf("a name that is no member's: %v", err)
	}
}
