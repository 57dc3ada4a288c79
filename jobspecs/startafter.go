package jobspecs

import (
	"slices"
	"sort"
)

// StartCircle finds sets that wait for each other: after gives the start_after of
// each set by name. It is nil when there are none; else the first is named again
// as the last.
func StartCircle(after map[string][]string) []string {
	var names []string
	for name := range after {
		names = append(names, name)
	}
	sort.Strings(names)
	sound := map[string]bool{}
	for _, name := range names {
		if circle := circleFrom(name, after, nil, sound); circle != nil {
			return circle
		}
	}
	return nil
}

func circleFrom(name string, after map[string][]string, path []string, sound map[string]bool) []string {
	if i := slices.Index(path, name); i >= 0 {
		return append(slices.Clone(path[i:]), name)
	}
	if sound[name] {
		return nil
	}
	for _, next := range after[name] {
		if circle := circleFrom(next, after, append(path, name), sound); circle != nil {
			return circle
		}
	}
	sound[name] = true
	return nil
}

// StartOrder gives names in an order in which each set comes after those that it
// starts after; the given order is kept otherwise. There must be no circle.
func StartOrder(names []string, after map[string][]string) []string {
	var out []string
	var visit func(string)
	visit = func(name string) {
		if slices.Contains(out, name) || !slices.Contains(names, name) {
			return
		}
		for _, first := range after[name] {
			visit(first)
		}
		out = append(out, name)
	}
	for _, name := range names {
		visit(name)
	}
	return out
}
