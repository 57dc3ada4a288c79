package docker

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"

	"github.com/stsd/stsd/runtime"
)

// refusals are what engines say of a setting that they cannot give to a container,
// and what a person reads instead, in the spec's words. The container was asked
// for with c; m are the parts of what was said. The texts are those of 20.10 to 29,
// with runc and crun.
var refusals = []struct {
	said  *regexp.Regexp
	reads func(c *container.HostConfig, m []string) string
}{
	{regexp.MustCompile(`could not select device driver`), noDriver},
	{regexp.MustCompile(`(?:unresolvable|failed to inject) CDI devices`), noDriver},
	{regexp.MustCompile(`nvidia-container-cli: ((?s:.*))`), driverRefuses},
	{regexp.MustCompile(`setting rlimit type (\d+): (.*)`), rlimitRefused},
	{regexp.MustCompile("setrlimit `?(RLIMIT_[A-Z]+)`?: (.*)"), rlimitRefused},
	{regexp.MustCompile("/proc/(?:\\./)?sys/([^ :`]+)`?: (.*)"), sysctlRefused},
	{regexp.MustCompile(`sysctl (?:key )?([a-z]+\.[^ :]+)[^:]*: (?:.*: )?(.*)`), sysctlRefused},
	{regexp.MustCompile(`sysctl "?([^ "]+)"? is not in a separate kernel namespace`), sysctlShared},
	{regexp.MustCompile(`(?i)privileged mode is incompatible with user namespaces`), says(`privileged: this engine keeps its containers in user namespaces, where nothing is privileged`)},
	{regexp.MustCompile(`(?i)apply cap(?:abilitie)?s: `), capsRefused},
	{regexp.MustCompile(`invalid Cap(Add|Drop): unknown capability: "CAP_([^"]*)"`), unknownCap},
	{regexp.MustCompile(`Range of CPUs is from ([0-9.]+) to ([0-9.]+)`), says(`cpu: this engine gives $1 to $2`)},
	{regexp.MustCompile(`(?i)minimum memory limit allowed is ([0-9A-Za-z]+)`), says(`memory: this engine gives $1 or more`)},
	{regexp.MustCompile(`(?i)memory limit can not be less than memory reservation`), says(`memory_reservation is more than memory`)},
	{regexp.MustCompile(`(?i)logging plugin [^:]*: plugin "([^"]*)" not found`), says(`log: this engine has no driver "$1"`)},
	{regexp.MustCompile(`logger: no log driver named '([^']*)'`), says(`log: this engine has no driver "$1"`)},
	{regexp.MustCompile(`unknown log opt '([^']*)' for ([^ ]+) log driver`), says(`log: driver "$2" has no option "$1"`)},
	{regexp.MustCompile(`(?i)invalid signal: (.*)`), says(`stop_signal = "$1": there is no such signal`)},
	{regexp.MustCompile(`error mounting "([^"]*)" to rootfs at "([^"]*)".*: not a directory`), says(`$1 cannot be mounted at $2: one of them is a folder and the other is none`)},
}

// refusal says which setting of the spec the engine refuses; "" for a text about
// something else.
func refusal(text string, asked *container.HostConfig) string {
	text = plain(text)
	for _, r := range refusals {
		if m := r.said.FindStringSubmatch(text); m != nil {
			return r.reads(asked, m)
		}
	}
	return ""
}

// refused is the Problem of what the engine said, in the spec's words where we have them.
func refused(err error, asked *container.HostConfig, format string, args ...any) error {
	if sentence := refusal(err.Error(), asked); sentence != "" && !lostConnection(err) {
		return problem(runtime.ReasonCreateFailed, nil, "%s", sentence)
	}
	return known(runtime.ReasonCreateFailed, err, format, args...)
}

// says is a sentence with $1 and $2 for the parts of what was said.
func says(sentence string) func(*container.HostConfig, []string) string {
	return func(_ *container.HostConfig, m []string) string {
		text := sentence
		for i, part := range m {
			text = strings.ReplaceAll(text, "$"+strconv.Itoa(i), part)
		}
		return text
	}
}

func noDriver(c *container.HostConfig, _ []string) string {
	return "this engine has no driver for gpus" + equals(gpusText(c.DeviceRequests))
}

func driverRefuses(c *container.HostConfig, m []string) string {
	return "gpus" + equals(gpusText(c.DeviceRequests)) + ": its driver says: " + strings.Join(strings.Fields(m[1]), " ")
}

// equals is a setting's value, where it is known.
func equals(value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf(" = %q", value)
}

// rlimits are the numbers that the kernel gives to the limits of processes, on
// every platform that engines run on but MIPS and SPARC.
var rlimits = []string{"cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock",
	"as", "locks", "sigpending", "msgqueue", "nice", "rtprio", "rttime"}

func rlimitRefused(c *container.HostConfig, m []string) string {
	name := strings.ToLower(strings.TrimPrefix(m[1], "RLIMIT_"))
	if n, err := strconv.Atoi(name); err == nil && n < len(rlimits) {
		name = rlimits[n]
	}
	why := " is more than the engine allows"
	if !contains(m[2], "not permitted", "permission denied") {
		why = ": " + strings.ToLower(m[2])
	}
	i := slices.IndexFunc(c.Ulimits, func(u *container.Ulimit) bool { return u.Name == name })
	if i < 0 {
		return "ulimits." + name + why
	}
	return fmt.Sprintf("ulimits.%s = %s%s", name, limitText(c.Ulimits[i]), why)
}

// limitText is a limit as the spec has it.
func limitText(u *container.Ulimit) string {
	switch {
	case u.Soft != u.Hard:
		return fmt.Sprintf("%q", limit(u.Soft)+":"+limit(u.Hard))
	case u.Hard < 0:
		return `"unlimited"`
	}
	return limit(u.Hard)
}

func limit(n int64) string {
	if n < 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}

func sysctlRefused(c *container.HostConfig, m []string) string {
	key := sysctlName(c, m[1])
	switch {
	case contains(m[2], "no such file"):
		return "sysctls: the engine's kernel has no " + key
	case contains(m[2], "invalid argument", "out of range"):
		return fmt.Sprintf("sysctls.%q%s: the kernel does not take this value", key, equals(c.Sysctls[key]))
	}
	return fmt.Sprintf("sysctls: the engine may not set %s: %s", key, strings.ToLower(m[2]))
}

func sysctlShared(_ *container.HostConfig, m []string) string {
	return "sysctls: " + m[1] + " is the whole host's, not one container's"
}

// sysctlName is the spec's name of a setting whose path in /proc/sys is given:
// names may have a slash for a dot, and paths a dot for a slash.
func sysctlName(c *container.HostConfig, path string) string {
	words := func(s string) string { return strings.ReplaceAll(s, "/", ".") }
	for key := range c.Sysctls {
		if words(key) == words(path) {
			return key
		}
	}
	return words(path)
}

func capsRefused(c *container.HostConfig, _ []string) string {
	switch {
	case c.Privileged:
		return "privileged: this engine has not all capabilities itself, and so cannot give them"
	case len(c.CapAdd) > 0:
		return fmt.Sprintf("cap_add = %q: this engine has not all of them itself, and so cannot give them", []string(c.CapAdd))
	}
	return "this engine cannot give the container its capabilities: it has not all of them itself"
}

func unknownCap(_ *container.HostConfig, m []string) string {
	return fmt.Sprintf("cap_%s: there is no capability %q", strings.ToLower(m[1]), m[2])
}

// layers are what every program puts in front that passes an error on.
var layers = regexp.MustCompile(`^(?:Error response from daemon|failed to create task for container|failed to create containerd task|` +
	`failed to create shim(?: task)?|OCI runtime (?:create|start|exec) failed|OCI runtime error|(?:runc|crun)(?: (?:create|start|exec) failed)?|exec failed|` +
	`unable to start container process|error during container init|(?:container|process|rootfs|standard_init)_linux\.go:\d+|` +
	`starting container process caused|container init caused|setting rlimits for ready process caused|error setting rlimits for ready process): `)

// plain is the part of an engine's sentence that a person needs.
func plain(text string) string {
	for {
		rest := layers.ReplaceAllString(text, "")
		if rest == text {
			return strings.TrimSuffix(strings.TrimSpace(text), ": unknown")
		}
		text = rest
	}
}
