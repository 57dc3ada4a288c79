package docker

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killTime is how long we wait for killed processes to be gone: one in the middle
// of a write to a dead disk never is.
const killTime = time.Second

// killExec kills what an exec left running, with all its children, where we see
// the engine's processes, and waits for their end. It must be the container's: a
// pid may have been taken by another process since.
func (h *Host) killExec(ctx context.Context, execID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	e, err := h.cli().ContainerExecInspect(ctx, execID)
	if err != nil || !e.Running || e.Pid <= 1 || h.remote {
		return
	}
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", e.Pid))
	if err != nil || !bytes.Contains(groups, []byte(e.ContainerID)) {
		return
	}
	tree := processTree(e.Pid)
	for _, pid := range tree {
		_ = syscall.Kill(pid, syscall.SIGKILL) // one that has ended meanwhile is as good
	}
	late := time.Now().Add(killTime)
	for wait := time.Millisecond; slices.ContainsFunc(tree, lives) && time.Now().Before(late); wait = min(2*wait, 50*time.Millisecond) {
		time.Sleep(wait)
	}
}

// lives tells whether a process is there and has not ended.
func lives(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	return len(f) > 0 && f[0] != "Z" && f[0] != "X"
}

// processTree is a process and everything below it, parents first.
func processTree(root int) []int {
	children := map[int][]int{}
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		pid, _ := strconv.Atoi(filepath.Base(proc))
		if parent, ok := parentOf(proc); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	tree := []int{root}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree
}

// parentOf reads /proc/PID/stat: the parent is the second word after the name,
// which is in brackets and may hold anything.
func parentOf(proc string) (pid int, ok bool) {
	text, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) < 2 {
		return 0, false
	}
	pid, err = strconv.Atoi(f[1])
	return pid, err == nil
}
