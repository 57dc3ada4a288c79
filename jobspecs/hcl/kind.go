package hcl

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/distribution/reference"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/stsd/stsd/jobspecs"
)

// A kind is what an attribute may hold. read turns a known, non-null value into
// its one canonical form, so that "1" and 1, "60s" and "1m" are equal in a template.
type kind struct {
	word string // "a size", for messages and the docs
	read func(cty.Value) (any, error)
	elem *kind // of lists and maps, whose elements are evaluated one by one
	keys func(string) error
}

func (k *kind) isMap() bool { return k.elem != nil && k.keys != nil }

var (
	text     = textKind("a string", nil)
	boolean  = &kind{word: "true or false", read: readBool}
	duration = textKind("a duration", canonicalDuration)
	positive = textKind("a duration above 0", positiveDuration)
	size     = textKind("a size", canonicalSize)
	memory   = textKind("a size of at least 6MiB", canonicalMemory)
	percent  = textKind("a number or a percentage", canonicalPercent)
	label    = textKind("a DNS label", checked(checkLabel))
	absolute = textKind("an absolute path", canonicalPath)
	address  = textKind("an IP address", checked(checkAddress))
	signal   = textKind("a signal", checked(checkSignal))
	owner    = textKind("uid:gid", checked(checkOwner))
	mode     = &kind{word: "a file mode such as \"0644\"", read: readMode}
	cores    = &kind{word: "a number of cores", read: readCores}
	port     = number(1, 65535)
	portRef  = &kind{word: "a port number or the name of a port", read: readPortRef}
	image    = textKind("an image", checked(checkImage))

	ordinals  = listOfWord("a list of ordinals", number(0, math.MaxInt32))
	setNames  = listOfWord("a list of names", label)
	networks  = listOfWord("a list of names of networks", textKind("the name of a network", checked(checkNetwork)))
	argv      = listOf(word)
	env       = mapOf(word, checkEnvName)
	labels    = mapOf(text, checkLabelKey)
	hosts     = mapOf(address, checkHostName)
	sysctls   = mapOf(text, checkSysctl)
	stringMap = mapOf(text, checkKey)
)

func textKind(word string, canonical func(string) (string, error)) *kind {
	return &kind{word: word, read: func(v cty.Value) (any, error) {
		s, err := toText(v, word)
		if err != nil || canonical == nil {
			return s, err
		}
		return canonical(s)
	}}
}

func checked(check func(string) error) func(string) (string, error) {
	return func(s string) (string, error) { return s, check(s) }
}

// oneOf is a closed list of words.
func oneOf(allowed ...string) *kind {
	return textKind(quotedList(allowed), func(s string) (string, error) {
		if slices.Contains(allowed, s) {
			return s, nil
		}
		return "", fmt.Errorf("%q is none of %s%s", s, quotedList(allowed), didYouMean(s, allowed))
	})
}

func quotedList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = strconv.Quote(s)
	}
	return strings.Join(quoted, ", ")
}

// number is a whole number from low to high.
func number(low, high int) *kind {
	word := fmt.Sprintf("a whole number from %d to %d", low, high)
	if high == math.MaxInt32 {
		word = fmt.Sprintf("a whole number from %d", low)
	}
	return &kind{word: word, read: func(v cty.Value) (any, error) {
		f, err := toNumber(v, word)
		if err != nil {
			return nil, err
		}
		n, accuracy := f.Int64()
		if accuracy != big.Exact || n < int64(low) || n > int64(high) {
			return nil, fmt.Errorf("%s is not %s", show(v), word)
		}
		return json.Number(strconv.FormatInt(n, 10)), nil
	}}
}

// listOfWord is a list whose elements are no strings.
func listOfWord(word string, elem *kind) *kind {
	k := listOf(elem)
	k.word = word
	return k
}

func listOf(elem *kind) *kind {
	k := &kind{word: "a list of strings", elem: elem}
	k.read = func(v cty.Value) (any, error) {
		t := v.Type()
		if !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
			return nil, fmt.Errorf("this takes a list, as in [\"a\", \"b\"], not %s", describe(v))
		}
		list := []any{}
		for i, e := range v.AsValueSlice() {
			item, err := readElement(elem, e)
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			list = append(list, item)
		}
		return list, nil
	}
	return k
}

func mapOf(elem *kind, keys func(string) error) *kind {
	k := &kind{word: "a map of strings", elem: elem, keys: keys}
	k.read = func(v cty.Value) (any, error) {
		if t := v.Type(); !t.IsObjectType() && !t.IsMapType() {
			return nil, fmt.Errorf("this takes a map, as in { name = \"value\" }, not %s", describe(v))
		}
		m := map[string]any{}
		values := v.AsValueMap()
		for _, key := range sortedKeys(values) {
			if err := keys(key); err != nil {
				return nil, err
			}
			if values[key].IsNull() {
				continue
			}
			item, err := readElement(elem, values[key])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			m[key] = item
		}
		return m, nil
	}
	return k
}

func readElement(elem *kind, v cty.Value) (any, error) {
	if v.IsNull() {
		return nil, fmt.Errorf("null is not %s", elem.word)
	}
	return elem.read(v)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func toText(v cty.Value, word string) (string, error) {
	if v.Type() == cty.Number && v.AsBigFloat().IsInf() {
		return "", fmt.Errorf("this takes %s, not an infinite number", word)
	}
	s, err := convert.Convert(v, cty.String)
	if err != nil || s.IsNull() {
		return "", fmt.Errorf("this takes %s, not %s", word, describe(v))
	}
	return s.AsString(), nil
}

func toNumber(v cty.Value, word string) (*big.Float, error) {
	n, err := convert.Convert(v, cty.Number)
	if err != nil || n.IsNull() {
		return nil, fmt.Errorf("this takes %s, not %s", word, describe(v))
	}
	return n.AsBigFloat(), nil
}

func readBool(v cty.Value) (any, error) {
	b, err := convert.Convert(v, cty.Bool)
	if err != nil || b.IsNull() {
		return nil, fmt.Errorf("this takes true or false, not %s", describe(v))
	}
	return b.True(), nil
}

// describe names a value in a message: a short one as it is, else its type.
func describe(v cty.Value) string {
	t := v.Type()
	if t.IsPrimitiveType() {
		return show(v)
	}
	if t.IsObjectType() || t.IsMapType() {
		return "a map"
	}
	return "a list"
}

func show(v cty.Value) string {
	s, err := convert.Convert(v, cty.String)
	if err != nil || s.IsNull() {
		return "null"
	}
	text := s.AsString()
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:57], "") + "..."
	}
	if v.Type() == cty.String {
		return strconv.Quote(text)
	}
	return text
}

func canonicalDuration(s string) (string, error) {
	d, err := parseDuration(s)
	if err != nil {
		return "", err
	}
	return formatDuration(d), nil
}

func positiveDuration(s string) (string, error) {
	d, err := parseDuration(s)
	if err == nil && d == 0 {
		err = fmt.Errorf("%q is too short: want more than 0s", s)
	}
	if err != nil {
		return "", err
	}
	return formatDuration(d), nil
}

var bareNumber = regexp.MustCompile(`^[0-9]+$`)

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil && bareNumber.MatchString(s):
		return 0, fmt.Errorf("%q has no unit: write \"%ss\" for seconds", s, s)
	case err != nil:
		return 0, fmt.Errorf("%q is no duration: want a number and a unit, as in \"30s\", \"5m\" or \"1h30m\"", s)
	case d < 0:
		return 0, fmt.Errorf("%q is negative", s)
	}
	return d, nil
}

// formatDuration is Duration.String without the zeros at its end: "1m", not "1m0s".
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func canonicalSize(s string) (string, error) {
	n, err := jobspecs.Size(s)
	if err != nil {
		return "", err
	}
	return formatSize(n), nil
}

// minMemory is what Docker takes at least.
const minMemory = 6 << 20

func canonicalMemory(s string) (string, error) {
	n, err := jobspecs.Size(s)
	if err != nil {
		return "", err
	}
	if n < minMemory {
		return "", fmt.Errorf("%q is too little: Docker takes 6MiB at least", s)
	}
	return formatSize(n), nil
}

// formatSize writes n with the largest unit that divides it.
func formatSize(n int64) string {
	units := []struct {
		name string
		size int64
	}{
		{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3},
	}
	for _, u := range units {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

func canonicalPercent(s string) (string, error) {
	digits, isPercent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil:
		return "", fmt.Errorf("%q is neither a number nor a percentage, as in 1 or \"30%%\"", s)
	case n < 1:
		return "", fmt.Errorf("%q is too little: at least 1 member may be unavailable, or nothing could be updated", s)
	case isPercent && n > 100:
		return "", fmt.Errorf("%q is more than all", s)
	case isPercent:
		return strconv.Itoa(n) + "%", nil
	}
	return strconv.Itoa(n), nil
}

func checkLabel(s string) error {
	if len(s) > jobspecs.MaxLabel {
		return fmt.Errorf("%q has %d characters; a DNS label has %d at most", s, len(s), jobspecs.MaxLabel)
	}
	if !jobspecs.IsLabel(s) {
		return fmt.Errorf("%q is no DNS label: want lower-case letters, digits and dashes, with a letter or digit at both ends", s)
	}
	return nil
}

func canonicalPath(s string) (string, error) {
	if !path.IsAbs(s) || strings.ContainsRune(s, 0) {
		return "", fmt.Errorf("%q is no absolute path: want a slash at its beginning", s)
	}
	return path.Clean(s), nil
}

func checkAddress(s string) error {
	if _, err := netip.ParseAddr(s); err != nil {
		if s == "host-gateway" {
			return fmt.Errorf("%q is Docker's word; the host's address is self.host_ip here", s)
		}
		return fmt.Errorf("%q is no IP address", s)
	}
	return nil
}

var signalNames = []string{
	"ABRT", "ALRM", "BUS", "CHLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "KILL", "PIPE", "PROF", "PWR", "QUIT", "SEGV",
	"STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU", "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ",
}

var otherSignal = regexp.MustCompile(`^([1-9]|[1-5][0-9]|6[0-4]|(SIG)?RTM(IN(\+[0-9]{1,2})?|AX(-[0-9]{1,2})?))$`)

func checkSignal(s string) error {
	name := strings.TrimPrefix(s, "SIG")
	if slices.Contains(signalNames, name) || otherSignal.MatchString(s) {
		return nil
	}
	hint := ""
	if near := nearest(strings.ToUpper(name), signalNames); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", "SIG"+near)
	}
	return fmt.Errorf("%q is no signal%s", s, hint)
}

var ownerForm = regexp.MustCompile(`^[0-9]{1,10}:[0-9]{1,10}$`)

func checkOwner(s string) error {
	if !ownerForm.MatchString(s) {
		return fmt.Errorf("%q is no owner: want numbers, as in \"999:999\" (names are known inside the image only)", s)
	}
	return nil
}

func readMode(v cty.Value) (any, error) {
	if v.Type() != cty.String {
		return nil, fmt.Errorf("this takes a string of octal digits, as in \"0644\", not %s", describe(v))
	}
	n, err := strconv.ParseUint(v.AsString(), 8, 32)
	if err != nil || n > 0o7777 {
		return nil, fmt.Errorf("%s is no file mode: want octal digits, as in \"0644\"", show(v))
	}
	return fmt.Sprintf("%04o", n), nil
}

func readCores(v cty.Value) (any, error) {
	f, err := toNumber(v, "a number of cores, as in 0.5")
	if err != nil {
		return nil, err
	}
	n, _ := f.Float64()
	if n <= 0 || n > 1<<20 {
		return nil, fmt.Errorf("%s is no number of cores: want more than 0, as in 0.5", show(v))
	}
	return json.Number(strconv.FormatFloat(n, 'f', -1, 64)), nil
}

func readPortRef(v cty.Value) (any, error) {
	if n, err := port.read(v); err == nil {
		return n, nil
	}
	if v.Type() != cty.String || !jobspecs.IsLabel(v.AsString()) || bareNumber.MatchString(v.AsString()) {
		return nil, fmt.Errorf("%s is neither a port from 1 to 65535 nor the name of a port block", show(v))
	}
	return v.AsString(), nil
}

// imageID is how an image is named that has no other name.
var imageID = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

func checkImage(s string) error {
	_, err := reference.ParseNormalizedNamed(s)
	switch {
	case err == nil, imageID.MatchString(s):
		return nil
	case errors.Is(err, reference.ErrNameContainsUppercase), strings.Contains(err.Error(), "must be lowercase"):
		return fmt.Errorf("%q is no image: its name must be in lower case", s)
	case errors.Is(err, reference.ErrNameTooLong):
		return fmt.Errorf("%q is no image: its name is too long", s)
	case strings.ContainsAny(s, " \t\n\""):
		return fmt.Errorf("%q is no image: it has a blank or a quote in it", s)
	}
	return fmt.Errorf("%q is no image: want a name such as redis:7", s)
}

// checkKey holds the name of a label or an option against what every tool can show
// and match: ASCII that is printed.
func checkKey(s string) error {
	if s == "" || strings.HasPrefix(s, "$") || strings.ContainsFunc(s, notPlain) {
		return fmt.Errorf("%q cannot be a name here", s)
	}
	return nil
}

func notPlain(r rune) bool { return r < ' ' || r > '~' }

func checkEnvName(s string) error {
	if s == "" || strings.HasPrefix(s, "$") || strings.Contains(s, "=") || strings.ContainsFunc(s, notShown) {
		return fmt.Errorf("%q cannot be the name of an environment variable", s)
	}
	return nil
}

func notShown(r rune) bool { return !unicode.IsPrint(r) }

func checkLabelKey(s string) error {
	if strings.HasPrefix(s, "stsd.") {
		return fmt.Errorf("label %q: names that begin with stsd. are stsd's own", s)
	}
	if checkKey(s) != nil {
		return fmt.Errorf("%q cannot be the name of a label", s)
	}
	return nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

func checkHostName(s string) error {
	if len(s) > 253 || !hostName.MatchString(s) {
		return fmt.Errorf("%q is no host name", s)
	}
	return nil
}

// sysctlName is a path below net in the kernel's tree, whose steps are never empty:
// two dots would lead out of it.
var sysctlName = regexp.MustCompile(`^net(\.[A-Za-z0-9_:@-]+)+$`)

func checkSysctl(s string) error {
	switch {
	case !strings.HasPrefix(s, "net."):
		return fmt.Errorf("sysctl %q does not belong to a pod: only net.* does", s)
	case !sysctlName.MatchString(s):
		return fmt.Errorf("%q is no sysctl: want names and dots, as in net.core.somaxconn", s)
	}
	return nil
}
