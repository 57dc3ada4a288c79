package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

func newPsCmd(a *app) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:               "ps [TARGET…]",
		Short:             "List members",
		Long:              "ps lists members, those not created yet too.\n\nA TARGET is a set (redis), a member (redis-1), a list or range (redis-0,2, redis-[0-2]), or NS/redis-1.",
		ValidArgsFunction: a.completeTargets,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.ps(cmd.Context(), f, args) },
	}
	f.add(cmd.Flags())
	return cmd
}

func (a *app) ps(ctx context.Context, f listFlags, args []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	return a.again(ctx, f.watch, func() (view, error) {
		rows, err := a.psRows(ctx, c, f, args)
		v := a.membersView(rows, f.allNamespaces)
		if err != nil || len(rows) > 0 || len(args) > 0 {
			return v, err
		}
		return a.orElsewhere(v, "members", f, func() (int, error) {
			all, err := c.Members(ctx, "")
			return len(all), err
		})
	})
}

func (a *app) psRows(ctx context.Context, c *client.Client, f listFlags, args []string) ([]jobspecs.Member, error) {
	if len(args) > 0 {
		rows, _, err := a.members(ctx, c, args)
		return orEmpty(rows), err
	}
	rows, err := c.Members(ctx, a.listed(f, nil))
	return orEmpty(rows), err
}

func (a *app) membersView(rows []jobspecs.Member, namespaces bool) view {
	v := view{doc: rows, names: []string{}}
	t := table{}
	t.row(a.head(namespaces, []string{"NAME", "READY", "STATE", "REV", "RESTARTS", "AGE", "IP", "PORTS"}, []string{"IMAGE", "VOLUMES", "ROLE", "WHY"})...)
	for _, m := range rows {
		v.names = append(v.names, nameOf(m.Namespace, m.Name))
		cells := []string{
			m.Name, readyCount(m), a.stateOf(m), orDash(shortRevision(m.Set, m.Revision)),
			fmt.Sprint(m.Restarts), a.age(m.StartedAt), orDash(m.IP), orDash(portsOf(m.Ports)),
		}
		more := []string{orDash(m.Image), orDash(strings.Join(m.Volumes, ",")), orDash(m.Role), whyCell(m)}
		t.row(a.cells(namespaces, m.Namespace, cells, more)...)
	}
	v.table = a.tableOr(t, len(rows), "no members")
	return v
}

// readyCount is ready containers of all that are meant to last, as kubectl shows it.
func readyCount(m jobspecs.Member) string {
	ready, lasting := 0, 0
	for _, c := range m.Containers {
		if c.Kind == jobspecs.KindInit {
			continue
		}
		lasting++
		if c.Ready {
			ready++
		}
	}
	if lasting < 2 {
		return map[bool]string{true: "1/1", false: "0/1"}[m.Ready]
	}
	return fmt.Sprintf("%d/%d", ready, lasting)
}

// whyCell is the reason for a member's state in a table.
func whyCell(m jobspecs.Member) string {
	switch {
	case m.Available && m.Reason != "" && m.Message != "":
		return firstLine(m.Message)
	case m.Available && m.Stale && m.StaleWhy != "":
		return m.StaleWhy
	case m.Available:
		return "available"
	}
	return orDash(whyOf(m))
}

// stateOf is the phase, with the reason where there is one, how long it has lasted
// where that should pass, and when what failed is tried again.
func (a *app) stateOf(m jobspecs.Member) string {
	s := m.Phase
	if m.Reason != "" && m.Reason != reasonNotCreated {
		s += " (" + m.Reason + ")"
	}
	if passing(m.Phase) && m.Since != nil && a.now().Sub(*m.Since) >= longPassing {
		s += " for " + a.age(m.Since)
	}
	if m.NextTry != nil && a.now().Before(*m.NextTry) {
		s += ", next try in " + short(m.NextTry.Sub(a.now()))
	}
	if m.Stale {
		s += " stale"
	}
	return s
}

// longPassing is how long a passing phase may last before it is said how long.
const longPassing = 5 * time.Second

// passing tells whether a phase is one that a member passes through.
func passing(phase string) bool {
	switch runtime.Phase(phase) {
	case runtime.Pulling, runtime.Initializing, runtime.Starting, runtime.Stopping:
		return true
	}
	return false
}

// portsOf is "127.0.0.1:8080->80/tcp, 9000/tcp".
func portsOf(ports []jobspecs.MemberPort) string {
	var out []string
	for _, p := range ports {
		s := fmt.Sprintf("%d/%s", p.Container, p.Protocol)
		if p.Host != 0 {
			s = fmt.Sprintf("%s:%d->%s", p.HostIP, p.Host, s)
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}
