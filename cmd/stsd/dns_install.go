package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/dns/hostdns"
)

// hostFlags are those of the verbs that set up this machine's resolver.
type hostFlags struct {
	root, domain, server, method string
	zones                        []string
	dryRun, yes                  bool
}

// newDNSInstallCmds are install, uninstall and status of `stsd dns`.
func newDNSInstallCmds(a *app) []*cobra.Command {
	return []*cobra.Command{newDNSInstallCmd(a), newDNSUninstallCmd(a), newDNSStatusCmd(a)}
}

func newDNSInstallCmd(a *app) *cobra.Command {
	var f hostFlags
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Let the programs of this machine find members by name",
		Long: "Tell this machine's resolver that stsd answers svc and the cluster domain, so that web-0.svc is found outside of\n" +
			"containers as well. What will be written is shown first; `stsd dns uninstall` makes every file what it was.",
		Example: "  stsd dns install --dry-run\n  sudo stsd dns install\n  sudo stsd dns install --method hosts --yes",
		Args:    args(0, 0, "nothing"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.dnsInstall(cmd.Context(), f) },
	}
	f.add(cmd)
	f.addWhat(cmd)
	cmd.Flags().StringVar(&f.method, "method", "", "one of "+strings.Join(methods(), ", ")+" (default: the first that fits this machine)")
	f.addWrite(cmd)
	a.complete(cmd, "method", words(methods()...))
	return cmd
}

func newDNSUninstallCmd(a *app) *cobra.Command {
	var f hostFlags
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Take back what dns install did, to the byte",
		Args:  args(0, 0, "nothing"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.dnsUninstall(cmd.Context(), f) },
	}
	f.add(cmd)
	f.addWrite(cmd)
	return cmd
}

func newDNSStatusCmd(a *app) *cobra.Command {
	var f hostFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how this machine finds members by name, and whether it does",
		Args:  args(0, 0, "nothing"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.dnsStatus(cmd.Context(), f) },
	}
	f.add(cmd)
	f.addWhat(cmd)
	return cmd
}

func (f *hostFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.root, "root", "/", "folder of another system, prepared as this one would be; nothing is run for it")
}

func (f *hostFlags) addWhat(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.server, "server", "", "where stsd answers (default: the daemon's first loopback address, else "+defaultDNSListen+")")
	cmd.Flags().StringVar(&f.domain, "domain", "cluster.local", "the daemon's cluster domain")
	cmd.Flags().StringSliceVar(&f.zones, "zone", nil, "zones to ask stsd for (default: svc and the cluster domain)")
}

func (f *hostFlags) addWrite(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would be done and do nothing")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
}

func methods() []string {
	var out []string
	for _, m := range hostdns.Methods() {
		out = append(out, string(m))
	}
	return out
}

// machine is the one that is set up. Of another system's root nothing is run here.
func (f *hostFlags) machine() hostdns.Host {
	h := hostdns.Host{Root: f.root}
	if f.root == "/" {
		h.Run = hostdns.Command
	}
	return h
}

// options puts together what is to be told; what is not given the daemon knows.
func (f *hostFlags) options(v *client.Version) (hostdns.Options, error) {
	o := hostdns.Options{Zones: f.zones}
	if o.Zones == nil {
		o.Zones = []string{"svc", strings.TrimSuffix(f.domain, ".")}
	}
	if v != nil {
		o.Daemon = v.Daemon
	}
	text := f.server
	if text == "" {
		text = hostView(v)
	}
	var err error
	if o.Server, err = netip.ParseAddrPort(text); err != nil {
		return o, usagef("--server %q: want ADDRESS:PORT", f.server)
	}
	return o, nil
}

// defaultDNSListen is where a daemon answers this machine's own programs. It is no
// port that only root may use, and not that of another resolver.
const defaultDNSListen = "127.0.0.1:5300"

// hostView is where a daemon answers on loopback.
func hostView(v *client.Version) string {
	if v == nil {
		return defaultDNSListen
	}
	for _, text := range v.DNS { // one that does not answer bears its reason
		if a, err := netip.ParseAddrPort(text); err == nil && a.Addr().IsLoopback() {
			return text
		}
	}
	return defaultDNSListen
}

// daemonVersion is what the daemon says of itself; nil: it does not answer.
func (a *app) daemonVersion(ctx context.Context) (*client.Version, error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	v, err := c.Version(ctx)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

// hostChange is what -o json of install and uninstall shows.
type hostChange struct {
	Method  hostdns.Method `json:"method"`
	Why     string         `json:"why"`
	Not     []string       `json:"not"` // methods that do not fit, and why
	Server  string         `json:"server"`
	Zones   []string       `json:"zones"`
	Steps   []hostStep     `json:"steps"`
	Done    bool           `json:"done"`    // false: it was only shown, or there was nothing to do
	Aliases []string       `json:"aliases"` // commands for addresses that this machine lacks
}

type hostStep struct {
	Do   string   `json:"do"` // write, mark, unmark, restore, remove, run
	Path string   `json:"path,omitempty"`
	Text string   `json:"text,omitempty"`
	Argv []string `json:"argv,omitempty"`
}

func newHostChange(p hostdns.Plan, steps []hostdns.Step) hostChange {
	out := hostChange{Method: p.Method, Why: p.Why, Not: orEmpty(p.Not), Server: p.Server.String(), Zones: orEmpty(p.Zones), Steps: []hostStep{}, Aliases: []string{}}
	for _, s := range steps {
		out.Steps = append(out.Steps, hostStep(s))
	}
	return out
}

func (a *app) dnsInstall(ctx context.Context, f hostFlags) error {
	h := f.machine()
	choice, err := hostdns.Choose(hostdns.Look(ctx, h, goruntime.GOOS), hostdns.Method(f.method))
	if err != nil {
		return usagef("dns install: %w", err)
	}
	v, err := a.daemonVersion(ctx)
	if err != nil && choice.Method == hostdns.Hosts {
		return fmt.Errorf("dns install: a block of the hosts file is the daemon's to keep: %w", err)
	}
	o, err := f.options(v)
	if err != nil {
		return err
	}
	p, err := hostdns.NewPlan(hostdns.Look(ctx, h, goruntime.GOOS), choice, o)
	if err != nil {
		return usagef("dns install: %w", err)
	}
	steps, err := hostdns.Installing(h, p)
	if err != nil {
		return err
	}
	change := newHostChange(p, steps)
	change.Aliases = a.aliases(ctx)
	if len(steps) > 0 && !f.dryRun {
		if err := a.mayChange(ctx, "install", f, change); err != nil {
			return err
		}
		if err := hostdns.Install(ctx, h, p); err != nil {
			return fmt.Errorf("dns install: %w", err)
		}
		change.Done = true
		a.sayInstalled(ctx, p, f)
	}
	return a.showChange(change, f, "installed already")
}

// sayInstalled says what was done, how to undo it, and what is missing.
func (a *app) sayInstalled(ctx context.Context, p hostdns.Plan, f hostFlags) {
	switch {
	case p.Method == hostdns.Hosts:
		a.say("installed: the daemon keeps its block of the hosts file up to date while it runs; the first lines come within 10 seconds")
	case f.root != "/":
		a.say("installed for the system in %s", f.root)
	default:
		a.say("installed: programs of this machine ask %s for %s", p.Server, strings.Join(p.Zones, ", "))
		if err := hostdns.Ask(ctx, p.Server, f.domain); err != nil {
			a.say("nothing answers there yet: %v; see stsd dns status", err)
		}
	}
	a.say("undo: stsd dns uninstall")
}

// mayChange asks on a terminal, and wants --yes elsewhere; only root may write
// what this machine's resolver reads.
func (a *app) mayChange(ctx context.Context, verb string, f hostFlags, change hostChange) error {
	if f.root == "/" && os.Geteuid() != 0 {
		return &exitError{code: exitFailure, err: fmt.Errorf("dns %s changes files of this machine: it needs root", verb), next: []string{"sudo stsd dns " + verb, "stsd dns " + verb + " --dry-run"}}
	}
	if f.yes {
		return nil
	}
	if !a.asks() {
		return &exitError{code: exitRefused, err: fmt.Errorf("dns %s changes this machine: not confirmed; nothing was changed", verb), next: []string{"stsd dns " + verb + " --dry-run", "stsd dns " + verb + " --yes"}}
	}
	writeChange(a.stderr, change, "")
	return a.askYes(ctx, "Do this? [y/N] ")
}

func (a *app) askYes(ctx context.Context, question string) error {
	fmt.Fprint(a.stderr, question)
	typed := make(chan string, 1)
	go func() { // not waited for: nothing interrupts a Read of a terminal
		line, _ := bufio.NewReader(a.stdin).ReadString('\n') // an end is no consent
		typed <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(a.stderr)
		return context.Cause(ctx)
	case got := <-typed:
		if got != "y" && got != "yes" {
			return &exitError{code: exitRefused, err: errors.New("not confirmed; nothing was changed")}
		}
		return nil
	}
}

// showChange shows what was done or would be, unless the question has shown it.
func (a *app) showChange(c hostChange, f hostFlags, nothing string) error {
	asked := c.Done && !f.yes
	return a.show(view{doc: c, table: func(w io.Writer) {
		if !asked {
			writeChange(w, c, nothing)
		}
	}})
}

// writeChange shows the steps, each file with its text.
func writeChange(w io.Writer, c hostChange, nothing string) {
	if c.Method != "" {
		fmt.Fprintf(w, "method %s: %s\n", c.Method, c.Why)
	}
	for _, not := range c.Not {
		fmt.Fprintf(w, "  not %s\n", not)
	}
	for _, s := range c.Steps {
		fmt.Fprintln(w, hostdns.Step(s))
		for line := range strings.Lines(s.Text) {
			fmt.Fprintf(w, "  | %s\n", strings.TrimRight(line, "\n"))
		}
	}
	if len(c.Steps) == 0 {
		fmt.Fprintln(w, nothing)
	}
	writeAliases(w, c.Aliases)
}

func writeAliases(w io.Writer, aliases []string) {
	if len(aliases) > 0 {
		fmt.Fprintln(w, "addresses that this machine lacks; run once after each start of it:")
	}
	for _, line := range aliases {
		fmt.Fprintln(w, "  "+line)
	}
}

// aliases are the commands for loopback addresses of members that this machine
// lacks. Without a daemon there are none.
func (a *app) aliases(ctx context.Context) []string {
	out := []string{}
	if goruntime.GOOS != "darwin" {
		return out // others have all of them
	}
	c, err := a.client()
	if err != nil {
		return out
	}
	defer c.Close()
	members, err := c.Members(ctx, "")
	if err != nil {
		return out
	}
	var wanted []netip.Addr
	for _, m := range members {
		for _, p := range m.Ports {
			if addr, err := netip.ParseAddr(p.HostIP); err == nil && p.Host != 0 && !slices.Contains(wanted, addr) {
				wanted = append(wanted, addr)
			}
		}
	}
	for _, argv := range hostdns.Aliases(goruntime.GOOS, wanted, hostdns.Addresses()) {
		out = append(out, strings.Join(argv, " "))
	}
	return out
}

func (a *app) dnsUninstall(ctx context.Context, f hostFlags) error {
	h := f.machine()
	r, err := hostdns.Installed(h)
	if err != nil {
		return err
	}
	steps, err := hostdns.Uninstalling(h)
	if err != nil {
		return err
	}
	change := hostChange{Not: []string{}, Zones: []string{}, Aliases: []string{}}
	if r != nil {
		change = newHostChange(hostdns.Plan{
			Choice:  hostdns.Choice{Method: r.Method, Why: "what is installed"},
			Options: hostdns.Options{Server: r.Server, Zones: r.Zones},
		}, steps)
	}
	if r != nil && !f.dryRun {
		if err := a.mayChange(ctx, "uninstall", f, change); err != nil {
			return err
		}
		if err := hostdns.Uninstall(ctx, h); err != nil {
			return fmt.Errorf("dns uninstall: %w", err)
		}
		change.Done = true
		a.say("uninstalled: the resolver is as it was")
	}
	return a.showChange(change, f, "nothing is installed")
}

// hostStatus is what -o json of status shows.
type hostStatus struct {
	Installed      bool                `json:"installed"`
	Method         hostdns.Method      `json:"method"` // that is installed, or would be
	Why            string              `json:"why"`
	Server         string              `json:"server"`
	Zones          []string            `json:"zones"`
	Files          []hostdns.FileState `json:"files"`
	ServerAnswers  bool                `json:"server_answers"`
	ServerError    string              `json:"server_error,omitempty"`
	MachineAnswers bool                `json:"machine_answers"` // its resolver finds names of stsd
	MachineError   string              `json:"machine_error,omitempty"`
	Aliases        []string            `json:"aliases"`
}

func (a *app) dnsStatus(ctx context.Context, f hostFlags) error {
	h := f.machine()
	r, err := hostdns.Installed(h)
	if err != nil {
		return err
	}
	v, noDaemon := a.daemonVersion(ctx)
	o, err := f.options(v)
	if err != nil {
		return err
	}
	s := hostStatus{Server: o.Server.String(), Zones: o.Zones, Files: []hostdns.FileState{}, Aliases: a.aliases(ctx)}
	s.look(ctx, h, r)
	if r != nil && f.server == "" && r.Server.IsValid() {
		o.Server = r.Server
	}
	if err := hostdns.Ask(ctx, o.Server, f.domain); err != nil {
		s.ServerError = why(o.Server, err, v, noDaemon)
	}
	if err := f.askMachine(ctx); err != nil {
		s.MachineError = err.Error()
	}
	s.ServerAnswers, s.MachineAnswers = s.ServerError == "", s.MachineError == ""
	return a.show(view{doc: s, table: func(w io.Writer) { writeHostStatus(w, s) }})
}

func (f *hostFlags) askMachine(ctx context.Context) error {
	if f.root != "/" {
		return errors.New("is not asked for the system in " + f.root)
	}
	return hostdns.AskMachine(ctx, f.domain)
}

// look fills in what is installed, or what would be.
func (s *hostStatus) look(ctx context.Context, h hostdns.Host, r *hostdns.Receipt) {
	if r == nil {
		choice, err := hostdns.Choose(hostdns.Look(ctx, h, goruntime.GOOS), "")
		s.Method, s.Why = choice.Method, choice.Why
		if err != nil {
			s.Why = err.Error()
		}
		return
	}
	s.Installed, s.Method, s.Files = true, r.Method, hostdns.States(h, r)
	if r.Server.IsValid() {
		s.Server, s.Zones = r.Server.String(), r.Zones
	}
}

// why nothing answers: the daemon knows better than a question that got no reply.
func why(server netip.AddrPort, asked error, v *client.Version, noDaemon error) string {
	if noDaemon != nil {
		return fmt.Sprintf("%v (%v)", asked, noDaemon)
	}
	for _, text := range v.DNS {
		if reason, ok := strings.CutPrefix(text, server.String()+": "); ok {
			return reason + rightToBind(server, reason)
		}
	}
	if !slices.Contains(v.DNS, server.String()) {
		return fmt.Sprintf("%v (the daemon does not listen there: see --dns-listen)", asked)
	}
	return asked.Error()
}

// rightToBind says what is missing where a low port was refused.
func rightToBind(server netip.AddrPort, reason string) string {
	if server.Port() >= 1024 || !strings.Contains(reason, "permission denied") {
		return ""
	}
	return " (a port below 1024 needs root or CAP_NET_BIND_SERVICE; " + defaultDNSListen + " does not)"
}

func writeHostStatus(w io.Writer, s hostStatus) {
	t := table{}
	switch {
	case !s.Installed && s.Method == "":
		t.row("installed", "no", s.Why)
	case !s.Installed:
		t.row("installed", "no", fmt.Sprintf("stsd dns install would use %s: %s", s.Method, s.Why))
	case s.Method == hostdns.Hosts:
		t.row("installed", string(s.Method), "a block of the hosts file")
	default:
		t.row("installed", string(s.Method), s.Server+" is asked for "+strings.Join(s.Zones, ", "))
	}
	for _, file := range s.Files {
		t.row("file", string(file.State), strings.TrimSpace(file.Path+" "+file.Message))
	}
	t.row("server", answers(s.ServerAnswers), strings.TrimSpace(s.Server+" "+s.ServerError))
	if s.Method != hostdns.Hosts {
		t.row("machine", answers(s.MachineAnswers), strings.TrimSpace("this machine's resolver "+s.MachineError))
	}
	t.write(w)
	writeAliases(w, s.Aliases)
}

func answers(yes bool) string {
	if yes {
		return "answers"
	}
	return "silent"
}
