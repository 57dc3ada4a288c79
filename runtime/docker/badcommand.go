package docker

import (
	"regexp"
	"strings"
)

// commandSentences are what engines say of a process that cannot be started, and
// what a person reads instead. $1 is what the engine quotes. The texts are those
// of 20.10 to 28, with runc and crun.
var commandSentences = []struct{ said, reads string }{
	{`(?i)^no command specified`, `the image has no entrypoint and no command: set command or args`},
	{`exec: "([^"]*)": executable file not found in \$PATH`, `command "$1" is not in the container's $$PATH`},
	{`executable file [^a-z]?([^ '"` + "`" + `]+)[^a-z]? not found`, `command "$1" is not in the container's $$PATH`},
	{`exec: "([^"]*)": (?:stat [^:]*: )?(?:no such file or directory|not a directory)`, `command "$1" does not exist in the container`},
	{`exec: "([^"]*)": (?:stat [^:]*: )?is a directory`, `command "$1" is a folder`},
	{`exec: "([^"]*)": (?:stat [^:]*: )?permission denied`, `command "$1" may not be executed: it is a folder, or its mode or a folder above it forbids it`},
	{`exec (/[^:]*): no such file or directory`, `command "$1" cannot run: its interpreter or loader does not exist in the container`},
	{`exec (/[^:]*): permission denied`, `command "$1" may not be executed: it is a folder, or its mode or a folder above it forbids it`},
	{`exec: "([^"]*)": exec format error`, `command "$1" is no program of this platform, or a script without a first line #!`},
	{`exec (/[^:]*): exec format error`, `command "$1" is no program of this platform, or a script without a first line #!`},
	{`exec format error`, `the command is no program of this platform, or a script without a first line #!`},
	{`unable to find user ([^:]*)`, `user = "$1": the image has no such user`},
	{`unable to find group ([^:]*)`, `user = "…:$1": the image has no such group`},
	{`no matching entries in passwd file`, `user: the image has no such user`},
	{`no matching entries in group file`, `user: the image has no such group`},
	{`uids and gids must be in range ([0-9-]*)`, `user: numbers must be within $1`},
	{`[Cc]annot mkdir: (.*) is not a directory`, `working_dir "$1" is not a folder`},
	{`chdir to cwd \("([^"]*)"\)[^:]*: not a directory`, `working_dir "$1" is not a folder`},
	{`chdir to cwd \("([^"]*)"\)[^:]*: no such file or directory`, `working_dir "$1" does not exist`},
	{`chdir to cwd \("([^"]*)"\)[^:]*: permission denied`, `working_dir "$1" may not be entered by the container's user`},
	{`chdir to cwd \("([^"]*)"\)`, `working_dir "$1" cannot be entered`},
	{`(?i)the working directory '([^']*)' is invalid`, `working_dir "$1" is not an absolute path`},
}

var commandPatterns = func() []*regexp.Regexp {
	var list []*regexp.Regexp
	for _, s := range commandSentences {
		list = append(list, regexp.MustCompile(s.said))
	}
	return list
}()

// commandSentence says in the spec's words why a process cannot be started; "" for
// a text about something else.
func commandSentence(text string) string {
	text = strings.TrimPrefix(text, "Error response from daemon: ")
	for i, p := range commandPatterns {
		if m := p.FindStringSubmatchIndex(text); m != nil {
			return string(p.ExpandString(nil, commandSentences[i].reads, text, m))
		}
	}
	return ""
}
