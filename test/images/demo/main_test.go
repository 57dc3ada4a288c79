package main

import (
	"bytes"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachStartIsALineInTheLog(t *testing.T) {
	data := filepath.Join(t.TempDir(), "log")
	first := newMember(data)
	second := newMember(data)
	if first.boot != 1 || second.boot != 2 {
		t.Errorf("boots = %d, %d, want 1, 2", first.boot, second.boot)
	}

	post := httptest.NewRecorder()
	second.handler().ServeHTTP(post, httptest.NewRequest("POST", "/data", strings.NewReader("hello\n")))
	got := httptest.NewRecorder()
	second.handler().ServeHTTP(got, httptest.NewRequest("GET", "/data", nil))
	want := "boot 1 " + first.name + " vdev\nboot 2 " + first.name + " vdev\nhello\n"
	if got.Body.String() != want {
		t.Errorf("log = %q, want %q", got.Body, want)
	}
}

func TestWithoutAVolumeItServesAll(t *testing.T) {
	m := newMember("/nowhere/log")
	if m.boot != 1 {
		t.Errorf("boot = %d, want 1", m.boot)
	}
	if got := status(m, "/data"); got != 404 {
		t.Errorf("GET /data = %d, want 404", got)
	}
}

func TestHealthzFailsAndComesBackOnRequest(t *testing.T) {
	m := newMember(filepath.Join(t.TempDir(), "log"))
	got := []int{status(m, "/healthz"), status(m, "/fail"), status(m, "/healthz"), status(m, "/ok"), status(m, "/healthz")}
	want := []int{200, 200, 503, 200, 200}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("codes = %v, want %v", got, want)
		}
	}
}

func TestOrdinalIsTheNumberAtTheEndOfTheName(t *testing.T) {
	for name, want := range map[string]string{"web-0": "0", "a-b-12": "12", "web": "-", "web-x": "-", "web-": "-"} {
		if got := ordinal(name); got != want {
			t.Errorf("ordinal(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestWriteThenCat(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	var out bytes.Buffer
	for _, args := range [][]string{{"write", file, "long text"}, {"write", file, "short"}, {"cat", file}} {
		if err := run(args, &out); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	if out.String() != "short\n" {
		t.Errorf("cat = %q, want %q", out.String(), "short\n")
	}
}

func TestOptionsComeFromTheEnvironmentAndFlagsWin(t *testing.T) {
	t.Setenv("READY_DELAY", "3s")
	t.Setenv("IGNORE_TERM", "1")
	t.Setenv("EXIT_CODE", "7")
	got, err := parseOptions([]string{"-exit-code", "9"})
	if err != nil {
		t.Fatal(err)
	}
	want := options{readyDelay: 3e9, ignoreTerm: true, exitAfter: -1, exitCode: 9, logFile: "/data/log"}
	if got != want {
		t.Errorf("options = %+v, want %+v", got, want)
	}
}

func status(m *member, path string) int {
	w := httptest.NewRecorder()
	m.handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Code
}
