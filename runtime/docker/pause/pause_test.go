package pause_test

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stsd/stsd/runtime/docker/pause"
)

func TestFileIsAnExecutableOfItsMachine(t *testing.T) {
	t.Parallel()
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		program, ok := pause.ELF(arch)
		if !ok || len(program) > 400 {
			t.Fatalf("%s: %d bytes, %v", arch, len(program), ok)
		}
		f, err := elf.NewFile(bytes.NewReader(program))
		if err != nil {
			t.Fatal(err)
		}
		load := f.Progs[0]
		if f.Type != elf.ET_EXEC || f.Machine != machine || load.Filesz != uint64(len(program)) || load.Flags != elf.PF_R|elf.PF_X {
			t.Errorf("%s: %+v, %+v", arch, f.FileHeader, load.ProgHeader)
		}
		if again, _ := pause.ELF(arch); !bytes.Equal(program, again) {
			t.Errorf("%s: another file the second time", arch)
		}
	}
	if _, ok := pause.ELF("s390x"); ok {
		t.Error("there is a program for s390x")
	}
}

// emulators run a program of another architecture.
var emulators = map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}

// The program runs here as an ordinary process: it must ignore what it does not
// know, reap its child, and end in order.
func TestItReapsItsChildAndEndsAtATermination(t *testing.T) {
	t.Parallel()
	for arch, emulator := range emulators {
		for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(arch+" "+end.String(), func(t *testing.T) {
				t.Parallel()
				run := command(t, arch, emulator)
				if err := run.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { run.Process.Kill() })
				await(t, "its child", func() bool { return childOf(run.Process.Pid) != "" })
				await(t, "that its child is reaped", func() bool { return childOf(run.Process.Pid) == "" })
				run.Process.Signal(syscall.SIGHUP)
				run.Process.Signal(syscall.SIGUSR1)
				run.Process.Signal(end)
				if err := run.Wait(); err != nil {
					t.Errorf("ended with %v, want exit code 0", err)
				}
			})
		}
	}
}

// command starts the program in the place of a shell that has a child, which ends
// a moment later.
func command(t *testing.T, arch, emulator string) *exec.Cmd {
	t.Helper()
	program, _ := pause.ELF(arch)
	path := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	argv := path
	if arch != goruntime.GOARCH {
		found, err := exec.LookPath(emulator)
		if err != nil {
			t.Skipf("needs %s to run a program for %s: %v", emulator, arch, err)
		}
		argv = found + " " + path
	}
	if goruntime.GOOS != "linux" {
		t.Skip("needs Linux to run it")
	}
	return exec.Command("sh", "-c", "sleep 1 & exec "+argv)
}

// childOf is the process's child, even one that ended and was not reaped.
func childOf(pid int) string {
	id := strconv.Itoa(pid)
	list, _ := os.ReadFile(filepath.Join("/proc", id, "task", id, "children"))
	return strings.TrimSpace(string(list))
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s was not seen within 10 s", what)
		}
	}
}
