package hostdns

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestPutBlock(t *testing.T) {
	t.Parallel()
	lines := []string{"10.0.0.1\tweb-0.svc"}
	head := beginMark + "d1" + remark
	tests := []struct{ name, before, after string }{
		{"an empty file", "", head + "\n10.0.0.1\tweb-0.svc\n# END stsd d1\n"},
		{"after what is there", "127.0.0.1 localhost\n", "127.0.0.1 localhost\n" + head + "\n10.0.0.1\tweb-0.svc\n# END stsd d1\n"},
		{"a last line without its end", "127.0.0.1 localhost", "127.0.0.1 localhost\n" + head + glued + "\n10.0.0.1\tweb-0.svc\n# END stsd d1\n"},
		{"in place of its old lines", "a\n# BEGIN stsd d1\nold\n# END stsd d1\nb\n", "a\n# BEGIN stsd d1\n10.0.0.1\tweb-0.svc\n# END stsd d1\nb\n"},
		{"a file with the ends of Windows", "a\r\n# BEGIN stsd d1: x\r\nold\r\n# END stsd d1\r\nb\r\n", "a\r\n# BEGIN stsd d1: x\r\n10.0.0.1\tweb-0.svc\n# END stsd d1\r\nb\r\n"},
		{"beside the block of another daemon", "# BEGIN stsd d12\nx\n# END stsd d12\n", "# BEGIN stsd d12\nx\n# END stsd d12\n" + head + "\n10.0.0.1\tweb-0.svc\n# END stsd d1\n"},
		{"an end without its newline", "# BEGIN stsd d1\n# END stsd d1", "# BEGIN stsd d1\n10.0.0.1\tweb-0.svc\n# END stsd d1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := putBlock([]byte(tt.before), "d1", lines)
			if err != nil || string(got) != tt.after {
				t.Errorf("got %q, %v\nwant %q", got, err, tt.after)
			}
		})
	}
}

func TestADamagedBlockIsNotTouched(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"without an end", "# BEGIN stsd d1\nx\n", `does not end: write the line "# END stsd d1"`},
		{"without a beginning", "a\n# END stsd d1\n", "line 2: the block of stsd d1 ends before it begins"},
		{"twice", "# BEGIN stsd d1\n# END stsd d1\n# BEGIN stsd d1\n# END stsd d1\n", "line 3: the block of stsd d1 begins twice"},
		{"with two ends", "# BEGIN stsd d1\n# END stsd d1\n# END stsd d1\n", "line 3: the block of stsd d1 ends twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for verb, do := range map[string]func() ([]byte, error){
				"put":  func() ([]byte, error) { return putBlock([]byte(tt.text), "d1", nil) },
				"take": func() ([]byte, error) { return takeBlock([]byte(tt.text), "d1") },
			} {
				if _, err := do(); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s: error %v, want …%s…", verb, err, tt.want)
				}
			}
		})
	}
}

func TestTakeBlockLeavesWhatOthersWroteMeanwhile(t *testing.T) {
	t.Parallel()
	text, err := putBlock([]byte("a"), "d1", []string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := takeBlock(append(text, "b\n"...), "d1")
	if want := "a\nb\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	a := addrs("10.0.0.2", "10.0.0.1")
	got := strings.Join(Lines([]Entry{{a[0], []string{"web-1.svc", "web-1.web"}}, {a[1], []string{"web-0.svc"}}, {a[1], []string{"web-0.svc"}}, {a[1], nil}, {Names: []string{"x"}}}), "\n")
	if want := "10.0.0.1\tweb-0.svc\n10.0.0.2\tweb-1.svc web-1.web"; got != want {
		t.Errorf("lines %q, want %q", got, want)
	}
}

func TestKeepBlock(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "hosts")
	keep := func(wantChanged bool, want string, lines ...string) {
		t.Helper()
		changed, err := KeepBlock(name, "d1", func() []string { return lines })
		text, _ := os.ReadFile(name)
		if err != nil || changed != wantChanged || string(text) != want {
			t.Errorf("changed %v, error %v, text %q; want %v and %q", changed, err, text, wantChanged, want)
		}
	}
	keep(false, "", "no file, no block")
	write(t, name, "127.0.0.1 localhost\n", 0o640)
	keep(false, "127.0.0.1 localhost\n", "nobody asked for a block")
	write(t, name, "# BEGIN stsd d1\n# END stsd d1\n", 0o640)
	keep(true, "# BEGIN stsd d1\nx\n# END stsd d1\n", "x")
	keep(false, "# BEGIN stsd d1\nx\n# END stsd d1\n", "x")
	fi, err := os.Stat(name)
	if err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v, want it as it was", fi.Mode(), err)
	}
}

// The daemon writes its block while "uninstall" takes it out: it never comes back.
func TestABlockThatWasTakenOutStaysOut(t *testing.T) {
	t.Parallel()
	m := newMachine(t, map[string]string{"etc/hosts": "127.0.0.1 localhost\n"})
	for range 20 {
		m.install(t, plan(t, Hosts))
		var daemon sync.WaitGroup
		start := make(chan struct{})
		daemon.Go(func() {
			<-start
			for n := range 20 {
				if _, err := KeepBlock(m.at(hostsFile), "d1", func() []string { return []string{fmt.Sprint("10.0.0.1\tweb-", n)} }); err != nil {
					t.Error(err)
				}
			}
		})
		close(start)
		m.uninstall(t)
		daemon.Wait()
		if got, want := m.read(hostsFile), "127.0.0.1 localhost\n"; got != want {
			t.Fatalf("hosts file %q, want %q", got, want)
		}
	}
}

// Whatever a hosts file holds: a block that is put and taken leaves no trace, and
// nothing outside of it is ever lost.
func FuzzBlock(f *testing.F) {
	for _, text := range []string{"", "a", "a\n", "a\r\n", "\n", "# BEGIN stsd d1\n# END stsd d1", "# BEGIN stsd d1\n", "# BEGIN stsd d1x\n"} {
		f.Add([]byte(text), "10.0.0.1 web-0")
	}
	f.Fuzz(func(t *testing.T, text []byte, line string) {
		if strings.ContainsAny(line, "\n\r") || strings.HasPrefix(line, "#") {
			return // no line of ours
		}
		without, err := takeBlock(text, "d1")
		if err != nil {
			return
		}
		with, err := putBlock(without, "d1", []string{line})
		if err != nil {
			t.Fatalf("put after take: %v", err)
		}
		if !bytes.HasPrefix(with, without) {
			t.Fatalf("put changed what was there: %q, before %q", with, without)
		}
		again, err := takeBlock(with, "d1")
		if err != nil || !bytes.Equal(again, without) {
			t.Fatalf("put and take made %q of %q: %v", again, without, err)
		}
	})
}
