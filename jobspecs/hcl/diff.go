package hcl

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

// Diff is what differs between two templates, sorted by path. Values stand as a
// user would write them; "" is an attribute that was not written. Of a text of
// several lines only the lines that differ are shown.
func Diff(a, b jobspecs.Template) []jobspecs.Change {
	return changes(flatTemplate(a), flatTemplate(b))
}

// DiffSets is what differs beside the template.
func DiffSets(a, b *jobspecs.Set) []jobspecs.Change {
	return changes(flatSet(a), flatSet(b))
}

func changes(a, b map[string]any) []jobspecs.Change {
	paths := sortedUnique(append(sortedKeys(a), sortedKeys(b)...))
	var out []jobspecs.Change
	for _, path := range paths {
		before, after := written(a[path]), written(b[path])
		if before == after && !reflect.DeepEqual(a[path], b[path]) { // what differs is hidden
			after = strings.ReplaceAll(after, hidden, hiddenOther)
		}
		if before == after {
			continue
		}
		sizes := [2]int{textLength(a[path]), textLength(b[path])}
		if isText(a[path]) && isText(b[path]) {
			before, after = lineDiff(a[path].(string), b[path].(string))
		}
		out = append(out, jobspecs.Change{Path: path, Before: capped(before, sizes[0]), After: capped(after, sizes[1])})
	}
	return out
}

// maxShown is how much of a value is shown on each side of a difference, in bytes.
const maxShown = 400

// capped is a value as far as it is shown, with how large the whole one is.
func capped(shown string, whole int) string {
	if len(shown) <= maxShown {
		return shown
	}
	return strings.ToValidUTF8(shown[:maxShown], "") + fmt.Sprintf("… (%s)", roughSize(max(whole, len(shown))))
}

// textLength is how long a text is, in bytes; 0 of what is none.
func textLength(v any) int {
	s, _ := v.(string)
	return len(s)
}

// roughSize is a size as people say it: "5.0 MB".
func roughSize(n int) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}

func isText(v any) bool {
	s, ok := v.(string)
	return ok && strings.Contains(s, "\n")
}

func flatTemplate(t jobspecs.Template) map[string]any {
	flat := map[string]any{}
	if doc, err := decodeDocument(t); err == nil {
		flatten(flat, "", doc)
	}
	return flat
}

// flatten gives every attribute its path: container.redis.port.client.host.
func flatten(flat map[string]any, path string, v any) {
	if isSecret(path) { // of a template that was made before it was hidden, too
		v = sensitiveValue(opened(v))
	}
	if isLeaf(v) {
		flat[path] = v
		return
	}
	switch v := v.(type) {
	case document:
		for _, key := range sortedKeys(v) {
			flatten(flat, join(path, key), v[key])
		}
	case []any:
		if !slices.ContainsFunc(v, isBlock) {
			flat[path] = v
			return
		}
		for i, item := range v {
			at := path
			if len(v) > 1 {
				at = fmt.Sprintf("%s[%d]", path, i)
			}
			flatten(flat, at, item)
		}
	default:
		flat[path] = v
	}
}

// isBlock tells a mount in a list of them from an element of a list.
func isBlock(v any) bool {
	_, isMap := v.(document)
	return isMap && !isLeaf(v)
}

// isLeaf tells an expression and a sensitive value from a map of attributes.
func isLeaf(v any) bool {
	_, symbolic := expression(v)
	_, wrapped := revealed(v)
	return symbolic || wrapped
}

// written is a value as HCL, "" for none.
func written(v any) string {
	if text, ok := expression(v); ok {
		return text
	}
	if _, ok := revealed(v); ok {
		return hidden
	}
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return quote(v)
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = written(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// maxDiffLines is how many lines of a changed text are shown on each side.
const maxDiffLines = 10

// minContext is from how many lines on a text's difference says where it is.
const minContext = 20

// lineDiff are the lines that only one text has, each after "- " or "+ "; those of
// a long text stand behind the line before the first of them.
func lineDiff(a, b string) (before, after string) {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	removed, added := differentLines(x, y)
	before, after = marked("- ", removed), marked("+ ", added)
	if at := alikeLines(x, y); at > 0 && max(len(x), len(y)) >= minContext {
		where := fmt.Sprintf("  %s (line %d)\n", capped(x[at-1], 0), at)
		if before != "" {
			return where + before, after
		}
		return before, where + after
	}
	return before, after
}

// alikeLines is how many lines two texts have in common at their begin.
func alikeLines(a, b []string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func marked(mark string, lines []string) string {
	var out []string
	for i, line := range lines {
		if i == maxDiffLines {
			out = append(out, fmt.Sprintf("%s… %d more lines", mark, len(lines)-i))
			break
		}
		out = append(out, mark+line)
	}
	return strings.Join(out, "\n")
}

// maxDiffCells bounds the table of the longest common subsequence; longer texts
// are shown whole between their first and last difference.
const maxDiffCells = 1 << 20

func differentLines(a, b []string) (removed, added []string) {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a)*len(b) > maxDiffCells {
		return a, b
	}
	common := commonLengths(a, b)
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			removed = append(removed, a[i])
			i++
		default:
			added = append(added, b[j])
			j++
		}
	}
	return append(removed, a[i:]...), append(added, b[j:]...)
}

// commonLengths[i][j] is the length of the longest common subsequence of a[i:] and b[j:].
func commonLengths(a, b []string) [][]int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			table[i][j] = max(table[i+1][j], table[i][j+1])
			if a[i] == b[j] {
				table[i][j] = table[i+1][j+1] + 1
			}
		}
	}
	return table
}

func flatSet(s *jobspecs.Set) map[string]any {
	flat := map[string]any{}
	if s == nil {
		return flat
	}
	if s.Replicas != nil {
		flat["replicas"] = json.Number(strconv.Itoa(*s.Replicas))
	}
	flat["start_ordinal"] = json.Number(strconv.Itoa(s.StartOrdinal))
	if len(s.Reserve) > 0 {
		flat["reserve"] = listing(s.Reserve)
	}
	if len(s.StartAfter) > 0 {
		flat["start_after"] = listing(s.StartAfter)
	}
	flat["pod_management"] = s.PodManagement
	flat["recovery_wait"] = formatDuration(s.RecoveryWait)
	flat["revision_history_limit"] = json.Number(strconv.Itoa(s.RevisionHistoryLimit))
	flat["update.strategy"] = s.Update.Strategy
	flat["update.partition"] = json.Number(strconv.Itoa(s.Update.Partition))
	flat["update.max_unavailable"] = s.Update.MaxUnavailable
	flat["update.min_ready"] = formatDuration(s.Update.MinReady)
	flat["update.deadline"] = formatDuration(s.Update.Deadline)
	flat["update.on_failure"] = s.Update.OnFailure
	flat["update.order"] = s.Update.Order
	if s.Update.Last != "" {
		flat["update.last"] = s.Update.Last
	}
	flatMembership(flat, s)
	flat["dns.member_names"] = s.DNS.MemberNames
	flat["dns.set_name"] = s.DNS.SetName
	flat["dns.ttl"] = formatDuration(s.DNS.TTL)
	flat["dns.negative_ttl"] = formatDuration(s.DNS.NegativeTTL)
	if s.HostAccess != "" {
		flat["host_access.mode"] = s.HostAccess
	}
	for _, c := range s.Claims {
		path := "volume." + c.Name
		flat[path+".on_scale_down"] = c.OnScaleDown
		flat[path+".on_delete"] = c.OnDelete
		if doc, err := decodeDocument(c.Spec); err == nil {
			flatten(flat, path, doc)
		}
	}
	return flat
}

// flatMembership adds guard and hooks, and the place of each hook among the others.
func flatMembership(flat map[string]any, s *jobspecs.Set) {
	if s.Guard != nil {
		if doc, err := decodeDocument(s.Guard.Spec); err == nil {
			flatten(flat, "guard", doc)
		}
	}
	var order []string
	for _, h := range s.Hooks {
		order = append(order, h.Name)
		path := "hook." + h.Name
		flat[path+".on"] = h.On
		flat[path+".timeout"] = formatDuration(h.Timeout)
		flat[path+".on_failure"] = h.OnFailure
		if h.Once {
			flat[path+".once"] = true
		}
		if h.Ordinal != nil {
			flat[path+".ordinal"] = json.Number(strconv.Itoa(*h.Ordinal))
		}
		if h.Container != "" {
			flat[path+".container"] = h.Container
		}
		if doc, err := decodeDocument(h.Spec); err == nil {
			flatten(flat, path, doc)
		}
	}
	if len(order) > 1 {
		flat["hooks in order"] = listing(order)
	}
}

// listing is a list as documents have it.
func listing[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		if out[i] = v; reflect.TypeOf(v).Kind() == reflect.Int {
			out[i] = json.Number(fmt.Sprint(v))
		}
	}
	return out
}
