package docker

import (
	"testing"

	"github.com/stsd/stsd/runtime"
)

const (
	runc20 = "failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: "
	runc19 = "OCI runtime create failed: container_linux.go:380: starting container process caused: "
	runc28 = "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: "
)

func TestSentencesOfBadCommands(t *testing.T) {
	t.Parallel()
	notFound := `command "nosuch" is not in the container's $PATH`
	noSuch := `command "/no/such" does not exist in the container`
	denied := `command "/noexec" may not be executed: it is a folder, or its mode or a folder above it forbids it`
	noUser := `user = "nobody-here": the image has no such user`
	noGroup := `user = "…:nogroup": the image has no such group`
	format := `command "/arm" is no program of this platform, or a script without a first line #!`
	for _, c := range []struct{ text, want string }{
		// Engine 20.10, with runc 1.1
		{`Error response from daemon: No command specified`, `the image has no entrypoint and no command: set command or args`},
		{runc20 + `exec: "nosuch": executable file not found in $PATH: unknown`, notFound},
		{runc20 + `exec: "/no/such": stat /no/such: no such file or directory: unknown`, noSuch},
		{runc20 + `exec: "/file/x": stat /file/x: not a directory: unknown: Are you trying to mount a directory onto a file (or vice-versa)? Check if the specified host path exists and is the expected type`, `command "/file/x" does not exist in the container`},
		{runc20 + `exec: "/noexec": permission denied: unknown`, denied},
		{`exec /arm: exec format error`, format},
		{`exec /shebang: no such file or directory`, `command "/shebang" cannot run: its interpreter or loader does not exist in the container`},
		{`Error response from daemon: Cannot mkdir: /file is not a directory`, `working_dir "/file" is not a folder`},
		{`unable to find user nobody-here: no matching entries in passwd file`, noUser},
		{`unable to find group nogroup: no matching entries in group file`, noGroup},
		{`uids and gids must be in range 0-2147483647`, `user: numbers must be within 0-2147483647`},
		{`the working directory 'data' is invalid, it needs to be an absolute path`, `working_dir "data" is not an absolute path`},
		// with runc 1.0
		{runc19 + `exec: "nosuch": executable file not found in $PATH: unknown`, notFound},
		{runc19 + `exec: "/no/such": stat /no/such: no such file or directory: unknown`, noSuch},
		{runc19 + `chdir to cwd ("/locked") set in config.json failed: permission denied: unknown`, `working_dir "/locked" may not be entered by the container's user`},
		// Engine 28, with runc 1.2 and 1.3
		{runc28 + `exec: "/noexec": permission denied`, denied},
		{runc28 + `exec: "/noexec": permission denied: unknown`, denied},
		{runc28 + `exec: "/dir": is a directory`, `command "/dir" is a folder`},
		{runc28 + `exec: "/arm": exec format error`, format},
		{runc28 + `exec /arm: exec format error`, format},
		{runc28 + `chdir to cwd ("/file") set in config.json failed: not a directory`, `working_dir "/file" is not a folder`},
		{`failed to create task for container: ` + `unable to find user nobody-here: no matching entries in passwd file`, noUser},
		// crun
		{"crun: executable file `nosuch` not found in $PATH: No such file or directory: OCI runtime attempted to invoke a command that was not found", notFound},
		{"crun: open executable: exec format error", `the command is no program of this platform, or a script without a first line #!`},
		// about something else
		{`error while creating mount source path '/x': mkdir /x: read-only file system`, ""},
		{`error mounting "/a" to rootfs at "/b": not a directory`, ""},
		{runc28 + `open /proc/sys/net/foo: no such file or directory`, ""},
		{`could not select device driver "" with capabilities: [[gpu]]`, ""},
		{``, ""},
	} {
		if got := commandSentence(c.text); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.text, got, c.want)
		}
		reason := ""
		if c.want != "" {
			reason = runtime.ReasonBadCommand
		}
		if got := startReason(c.text); got != reason {
			t.Errorf("%s: reason %q, want %q", c.text, got, reason)
		}
	}
}

func TestBadCommandOfACreateIsOneSentence(t *testing.T) {
	t.Parallel()
	err := errString("Error response from daemon: No command specified")
	want := "BadCommand: create container web-0: the image has no entrypoint and no command: set command or args"
	if got := problemOf(known(createReason(err.Error()), err, "create container %s", "web-0"), "ADDR"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

type errString string

func (e errString) Error() string { return string(e) }
