package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
)

func newDNSCmd(a *app) *cobra.Command {
	var q client.DNSQuery
	cmd := &cobra.Command{
		Use:   "dns [NAME]",
		Short: "Show what DNS answers now, to whom and why",
		Long: "Show what the daemon answers for a name now: each kind of client may be told something else. Without a name all\n" +
			"sets and members are shown, and where DNS answers. An address is looked up as dig -x does.",
		Example: "  stsd dns\n  stsd dns web.svc\n  stsd dns _http._tcp.web.svc --type SRV\n  stsd dns web --from web-0\n  stsd dns trace",
		Args:    args(0, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				q.Name = args[0]
			}
			return a.dns(cmd.Context(), q)
		},
	}
	cmd.Flags().StringVar(&q.Type, "type", "", "type of record (default A; PTR of an address)")
	cmd.Flags().StringVar(&q.From, "from", "", "who asks: an address, MEMBER or NAMESPACE/MEMBER (default: every kind of client)")
	a.complete(cmd, "type", words("A", "AAAA", "SRV", "PTR", "SOA", "NS", "TXT"))
	cmd.AddCommand(newDNSTraceCmd(a))
	cmd.AddCommand(newDNSInstallCmds(a)...)
	return cmd
}

func newDNSTraceCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "trace [NAME]",
		Short: "Show every question to DNS from now on, and what was answered",
		Long: "Show every question to DNS from now on, or those for one name, until interrupted. -o json writes one object a line.\n" +
			"While somebody traces, answers take a little longer.",
		Args: args(0, 1, "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			return a.dnsTrace(cmd.Context(), name)
		},
	}
}

func (a *app) dns(ctx context.Context, q client.DNSQuery) error {
	if q.From != "" && !strings.ContainsAny(q.From, "/.:") { // a member of the namespace that is meant
		q.From = a.inNamespace() + "/" + q.From
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	d, err := c.DNS(ctx, q)
	if err != nil {
		return err
	}
	return a.show(view{doc: d, table: func(w io.Writer) { a.writeDNS(w, d, q.Name == "") }})
}

func (a *app) writeDNS(w io.Writer, d client.DNS, all bool) {
	t := table{}
	t.row("NAME", "TYPE", "ANSWER", "TOLD TO", "WHY")
	for _, n := range d.Names {
		for _, told := range n.Told {
			t.row(n.Name, n.Type, answerText(told), strings.Join(told.To, ", "), told.Why)
		}
	}
	a.tableOr(t, len(d.Names), "no names yet")(w)
	if !all {
		return
	}
	var rows [][]string
	for _, l := range d.Listeners {
		rows = append(rows, []string{l.Address, orDash(l.Problem)})
	}
	section(w, "Listeners", rows)
}

// answerText is the data of the records, or why there is none.
func answerText(t client.DNSTold) string {
	switch {
	case len(t.Forwarded) > 0:
		return "as " + strings.Join(t.Forwarded, ", ") + " says"
	case len(t.Records) == 0 && t.Rcode == "NOERROR":
		return "NODATA"
	case len(t.Records) == 0:
		return t.Rcode
	}
	return recordData(t.Records)
}

// recordData drops owner, TTL and type, which the question says.
func recordData(records []string) string {
	var out []string
	for _, r := range records {
		fields := strings.SplitN(r, " ", 4)
		out = append(out, fields[len(fields)-1])
	}
	return strings.Join(out, ", ")
}

func (a *app) dnsTrace(ctx context.Context, name string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	show, err := a.traceWriter()
	if err != nil {
		return err
	}
	for {
		err := c.TraceDNS(ctx, name, show)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, client.ErrStreamEnded):
			return err
		}
		a.say("%s", lostText)
		if !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

func (a *app) traceWriter() (func(client.DNSTraced) error, error) {
	switch a.format.kind {
	case "json":
		enc := json.NewEncoder(a.stdout)
		enc.SetEscapeHTML(false)
		return func(q client.DNSTraced) error { return enc.Encode(q) }, nil
	case "go-template":
		return func(q client.DNSTraced) error { return writeTemplate(a.stdout, a.format.template, q) }, nil
	case "table", "wide":
		missed := 0
		return func(q client.DNSTraced) error {
			if q.Missed > missed {
				a.say("%d questions came faster than they can be shown", q.Missed-missed)
				missed = q.Missed
			}
			_, err := io.WriteString(a.stdout, traceLine(q))
			return err
		}, nil
	}
	return nil, usagef("-o %s: a trace is shown as table, json or go-template", a.format.kind)
}

func traceLine(q client.DNSTraced) string {
	question := "(unreadable)"
	if q.Name != "" {
		question = q.Name + " " + q.Type
	}
	said := q.Rcode
	switch {
	case len(q.Records) > 0:
		said = recordData(q.Records)
	case q.Rcode == "NOERROR" && !q.Foreign:
		said = "NODATA"
	}
	if q.Cut {
		said += " (cut)"
	}
	over := ""
	if q.TCP {
		over = " over TCP"
	}
	took := time.Duration(q.Microseconds) * time.Microsecond
	return fmt.Sprintf("%s  %s%s  %s  %s  %s  %s\n", q.Time.Local().Format(time.TimeOnly), q.Client, over, question, said, q.Why, took)
}
