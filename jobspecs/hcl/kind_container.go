package hcl

import (
	"encoding/csv"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/zclconf/go-cty/cty"

	"github.com/stsd/stsd/jobspecs"
)

// Kinds of what only containers have.
var (
	word         = textKind("a string", checked(checkWord))
	someText     = textKind("a string that is not empty", checked(checkSomeText))
	someSize     = textKind("a size above 0", canonicalSomeSize)
	unhurried    = textKind("a duration of at least 100ms", unhurriedDuration)
	mountPoint   = textKind("an absolute path", canonicalMountPoint)
	subPath      = textKind("a relative path", canonicalSubPath)
	pattern      = textKind("a regular expression", checked(checkPattern))
	gpus         = textKind("GPUs", canonicalGPUs)
	capability   = textKind("a capability", canonicalCapability)
	capabilities = setOfTexts(listOf(capability))
	commandLine  = notEmpty(listOf(word))
	ulimits      = mapOf(textKind("a number, \"SOFT:HARD\" or \"unlimited\"", canonicalUlimit), checkUlimitName)
	headers      = mapOf(textKind("a string", checked(checkHeader)), checkHeaderName)
)

// maxWord is the longest argument or environment variable that Linux hands to a
// program.
const maxWord = 128 << 10

func checkWord(s string) error {
	if len(s) >= maxWord {
		return fmt.Errorf("it has %d bytes; a program is given 131071 at most", len(s))
	}
	if strings.ContainsRune(s, 0) {
		return fmt.Errorf("a zero byte cannot be part of it")
	}
	return nil
}

func checkSomeText(s string) error {
	if s == "" {
		return fmt.Errorf("it is empty")
	}
	return checkWord(s)
}

func canonicalSomeSize(s string) (string, error) {
	n, err := jobspecs.Size(s)
	if err == nil && n == 0 {
		err = fmt.Errorf("%q is too little: want more than 0", s)
	}
	if err != nil {
		return "", err
	}
	return formatSize(n), nil
}

// minPeriod is the shortest time between two checks of a container, and the
// shortest that one may take: a probe is work for the daemon and the host.
const minPeriod = 100 * time.Millisecond

func unhurriedDuration(s string) (string, error) {
	d, err := parseDuration(s)
	if err == nil && d < minPeriod {
		err = fmt.Errorf("%q is too short: want %s at least", s, formatDuration(minPeriod))
	}
	if err != nil {
		return "", err
	}
	return formatDuration(d), nil
}

// ownPaths are files that stsd writes in every container.
var ownPaths = []string{"/etc/hosts", "/etc/resolv.conf", "/etc/hostname"}

// kernelPaths are folders that the kernel fills.
var kernelPaths = []string{"/proc", "/sys"}

func checkOwnPath(p string) error {
	if slices.Contains(ownPaths, p) {
		return fmt.Errorf("%s is written by stsd; extra_hosts adds lines to /etc/hosts", p)
	}
	for _, kernel := range append(kernelPaths, "/dev") {
		if inside(p, kernel) {
			return fmt.Errorf("%s cannot be a file: the kernel's own are in %s", p, kernel)
		}
	}
	return nil
}

func canonicalMountPoint(s string) (string, error) {
	p, err := canonicalPath(s)
	switch {
	case err != nil:
		return "", err
	case p == "/":
		return "", fmt.Errorf("nothing can be mounted at /: the image is there")
	case p == "/dev":
		return "", fmt.Errorf("nothing can be mounted at /dev: the kernel's own files are there")
	case slices.Contains(ownPaths, p):
		return "", fmt.Errorf("nothing can be mounted at %s: stsd writes that file", p)
	}
	for _, kernel := range kernelPaths {
		if inside(p, kernel) {
			return "", fmt.Errorf("nothing can be mounted at %s: the kernel's own files are in %s", p, kernel)
		}
	}
	return p, nil
}

func canonicalSubPath(s string) (string, error) {
	switch {
	case strings.ContainsRune(s, 0):
		return "", fmt.Errorf("%q is no path", s)
	case path.IsAbs(s):
		return "", fmt.Errorf("%q is absolute: want a path inside of what is mounted, as in \"conf/d\"", s)
	case slices.Contains(strings.Split(s, "/"), ".."):
		return "", fmt.Errorf("%q leads out of what is mounted", s)
	}
	if p := path.Clean(s); p != "." {
		return p, nil
	}
	return "", nil
}

// maxPattern is the longest pattern of a log probe.
const maxPattern = 4 << 10

func checkPattern(s string) error {
	if len(s) > maxPattern {
		return fmt.Errorf("the pattern has %d bytes; %d is the most", len(s), maxPattern)
	}
	if _, err := regexp.Compile(s); err != nil {
		return fmt.Errorf("%q is no regular expression (RE2): %s", s, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return nil
}

// canonicalGPUs is the argument of `docker run --gpus` in one spelling: "",
// "all", "2", or fields such as "\"device=0,1\"", whose quotes keep the list
// together.
func canonicalGPUs(s string) (string, error) {
	value := strings.TrimPrefix(s, "count=")
	switch n, err := strconv.Atoi(value); {
	case s == "":
		return "", nil
	case value == "all", err == nil && n == -1:
		return "all", nil
	case err == nil && n > 0 && n < math.MaxInt32:
		return strconv.Itoa(n), nil
	case deviceList.MatchString(s):
		return `"` + s + `"`, nil
	}
	if err := checkGPUFields(s); err != nil {
		return "", err
	}
	return s, nil
}

// deviceList is a list that would be taken for several fields without quotes.
var deviceList = regexp.MustCompile(`^device=[A-Za-z0-9:._-]+(,[A-Za-z0-9:._-]+)*$`)

var gpuKeys = []string{"capabilities", "count", "device", "driver", "options"}

func checkGPUFields(s string) error {
	wrong := fmt.Errorf("%q names no GPUs: want \"all\", a number, or \"device=0,1\"", s)
	fields, err := csv.NewReader(strings.NewReader(s)).Read()
	if err != nil || strings.ContainsAny(s, "\n\r\x00") {
		return wrong
	}
	for _, f := range fields {
		key, value, _ := strings.Cut(f, "=")
		if value == "" || !slices.Contains(gpuKeys, key) {
			return wrong
		}
		if n, err := strconv.Atoi(value); key == "count" && value != "all" && (err != nil || n < -1 || n == 0) {
			return wrong
		}
	}
	return nil
}

// capabilityNames are Linux's, without CAP_.
var capabilityNames = []string{
	"ALL", "AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE", "CHOWN", "DAC_OVERRIDE",
	"DAC_READ_SEARCH", "FOWNER", "FSETID", "IPC_LOCK", "IPC_OWNER", "KILL", "LEASE", "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE",
	"MKNOD", "NET_ADMIN", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_RAW", "PERFMON", "SETFCAP", "SETGID", "SETPCAP", "SETUID",
	"SYSLOG", "SYS_ADMIN", "SYS_BOOT", "SYS_CHROOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE",
	"SYS_TIME", "SYS_TTY_CONFIG", "WAKE_ALARM",
}

func canonicalCapability(s string) (string, error) {
	name := strings.TrimPrefix(strings.ToUpper(s), "CAP_")
	if !slices.Contains(capabilityNames, name) {
		return "", fmt.Errorf("%q is no capability%s", s, didYouMean(name, capabilityNames))
	}
	return name, nil
}

// setOfTexts is a list whose order and repetitions mean nothing.
func setOfTexts(list *kind) *kind {
	return &kind{word: list.word, elem: list.elem, read: func(v cty.Value) (any, error) {
		out, err := list.read(v)
		if err != nil {
			return nil, err
		}
		items := out.([]any)
		slices.SortFunc(items, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		return slices.Compact(items), nil
	}}
}

func notEmpty(list *kind) *kind {
	return &kind{word: list.word, elem: list.elem, read: func(v cty.Value) (any, error) {
		out, err := list.read(v)
		if err == nil && len(out.([]any)) == 0 {
			err = fmt.Errorf("the list is empty")
		}
		return out, err
	}}
}

// ulimitNames are those that Docker knows.
var ulimitNames = []string{
	"core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack",
}

func checkUlimitName(s string) error {
	if !slices.Contains(ulimitNames, s) {
		return fmt.Errorf("%q is no ulimit%s", s, didYouMean(s, ulimitNames))
	}
	return nil
}

// canonicalUlimit is "SOFT:HARD", or one number where both are the same; -1 is
// no limit.
func canonicalUlimit(s string) (string, error) {
	l, err := parseUlimit(s)
	if err != nil {
		return "", err
	}
	if l.Soft == l.Hard {
		return strconv.FormatInt(l.Soft, 10), nil
	}
	return fmt.Sprintf("%d:%d", l.Soft, l.Hard), nil
}

func parseUlimit(s string) (jobspecs.Ulimit, error) {
	first, second, two := strings.Cut(s, ":")
	if !two {
		second = first
	}
	soft, ok := limitOf(first)
	hard, too := limitOf(second)
	switch {
	case !ok || !too:
		return jobspecs.Ulimit{}, fmt.Errorf("%q is no ulimit: want a number, \"SOFT:HARD\" or \"unlimited\"", s)
	case hard != -1 && (soft == -1 || soft > hard):
		return jobspecs.Ulimit{}, fmt.Errorf("%q: the soft limit is above the hard one", s)
	}
	return jobspecs.Ulimit{Soft: soft, Hard: hard}, nil
}

func limitOf(s string) (int64, bool) {
	if s == "unlimited" {
		return -1, true
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= -1
}

func checkHeader(s string) error {
	if strings.ContainsAny(s, "\r\n\x00") {
		return fmt.Errorf("a header's value is one line")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
		return fmt.Errorf("a header's value has no control characters")
	}
	return nil
}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func checkHeaderName(s string) error {
	if !headerName.MatchString(s) || strings.HasPrefix(s, "$") {
		return fmt.Errorf("%q is no name of a header", s)
	}
	return nil
}
