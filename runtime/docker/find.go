package docker

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// find is the id of one of a pod's containers, by its block's name; an empty name
// is the one that has the pod's, or the only main where somebody renamed it. Previous
// is the last ended one of it. Only ours are found, and never the sandbox.
func (h *Host) find(ctx context.Context, pod runtime.PodName, name string, previous bool) (string, error) {
	set, ordinal, ok := jobspecs.ParseMember(pod.Name)
	if !ok {
		return "", fmt.Errorf("%s/%s: %w", pod.Namespace, pod.Name, runtime.ErrNotFound)
	}
	found, err := h.cli().ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(
		filters.Arg("label", jobspecs.LabelDaemon+"="+h.cfg.Daemon),
		filters.Arg("label", jobspecs.LabelNamespace+"="+pod.Namespace),
		filters.Arg("label", jobspecs.LabelSet+"="+set),
		filters.Arg("label", jobspecs.LabelOrdinal+"="+strconv.Itoa(ordinal)),
	)})
	if err != nil {
		return "", fmt.Errorf("list the containers of %s: %w", pod.Name, engineError(err))
	}
	var all []part
	for _, c := range found {
		all = append(all, partOf(pod, c))
	}
	return pick(pod, all, name, previous)
}

// part is one container of a pod, of now or the last one before it.
type part struct {
	id       string
	block    string // name of its block
	kind     string
	own      bool // it has the pod's name
	previous bool
	created  int64
}

func partOf(pod runtime.PodName, c container.Summary) part {
	var name string
	if len(c.Names) > 0 { // none while it is being removed
		name = strings.TrimPrefix(c.Names[0], "/")
	}
	block := c.Labels[jobspecs.LabelContainer]
	called := func(part string) bool { return name == jobspecs.ContainerName(pod.Namespace, pod.Name, part) }
	return part{
		id: c.ID, block: block, kind: c.Labels[jobspecs.LabelKind], created: c.Created,
		own:      called("") || called(jobspecs.PartPrevious),
		previous: called(jobspecs.PartPrevious) || called(jobspecs.PreviousPart(block)),
	}
}

func pick(pod runtime.PodName, all []part, name string, previous bool) (string, error) {
	all = slices.DeleteFunc(all, func(p part) bool { return p.kind == jobspecs.KindSandbox })
	if len(all) == 0 {
		return "", fmt.Errorf("%s/%s: %w", pod.Namespace, pod.Name, runtime.ErrNotFound)
	}
	slices.SortFunc(all, func(a, b part) int { return int(b.created - a.created) })      // the newest first
	slices.SortStableFunc(all, func(a, b part) int { return rank(b.own) - rank(a.own) }) // but what has the pod's name before a copy
	known, only := false, onlyMain(all)
	for _, p := range all {
		wanted := p.block == name || name == "" && (p.own || p.block == only)
		if wanted && p.previous == previous {
			return p.id, nil
		}
		known = known || wanted
	}
	who := pod.Namespace + "/" + pod.Name
	switch {
	case name != "" && !known:
		return "", absent(fmt.Sprintf("%s has no container %q: it has %s", who, name, blocks(all)))
	case previous:
		return "", absent(who + " has no ended container before this one" + ofBlock(name))
	}
	return "", absent(who + " has no container now" + ofBlock(name))
}

func rank(first bool) int {
	if first {
		return 1
	}
	return 0
}

// onlyMain is the block of a pod's mains where it has one; "" it has several.
func onlyMain(all []part) (block string) {
	for _, p := range all {
		switch {
		case p.kind != "" && p.kind != jobspecs.KindMain:
		case block != "" && block != p.block:
			return ""
		default:
			block = p.block
		}
	}
	return block
}

func ofBlock(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" of %q", name)
}

// blocks names the pod's containers.
func blocks(all []part) string {
	var names []string
	for _, p := range all {
		names = append(names, p.block)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// absent is runtime.ErrNotFound that says what is not there.
type absent string

func (a absent) Error() string        { return string(a) }
func (a absent) Is(target error) bool { return target == runtime.ErrNotFound }
