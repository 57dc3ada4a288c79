package hostdns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Method is a way to tell a machine's resolver.
type Method string

// The methods, in the order in which they are preferred.
const (
	MacOS          Method = "macos"
	Delegate       Method = "delegate"
	Resolved       Method = "resolved"
	NetworkManager Method = "networkmanager"
	Dnsmasq        Method = "dnsmasq"
	Hosts          Method = "hosts"
)

// Methods are all of them.
func Methods() []Method {
	var out []Method
	for _, r := range rules {
		out = append(out, r.method)
	}
	return out
}

// Choice is a method and the reasons for it.
type Choice struct {
	Method Method
	Why    string
	// Not are the methods that were passed over, or that do not fit and were asked
	// for all the same, each with its reason.
	Not []string
}

// rule tells whether a method works here. Either way it says why.
type rule struct {
	method Method
	on     string // the only system that has it; "": all but Windows
	fits   func(Facts) (why string, ok bool)
}

var rules = []rule{
	{MacOS, "darwin", func(Facts) (string, bool) {
		return "macOS asks the server of a zone that has a file in /etc/resolver", true
	}},
	{Delegate, "linux", fitsDelegate},
	{Resolved, "linux", fitsResolved},
	{NetworkManager, "linux", func(f Facts) (string, bool) {
		return fitsDnsmasq(f, "/etc/NetworkManager/dnsmasq.d", "NetworkManager's dnsmasq")
	}},
	{Dnsmasq, "linux", func(f Facts) (string, bool) { return fitsDnsmasq(f, "/etc/dnsmasq.d", "dnsmasq") }},
	{Hosts, "", func(Facts) (string, bool) {
		return "every program reads the hosts file; the daemon keeps a block of it up to date while it runs", true
	}},
}

// has tells whether the system has the method at all.
func (r rule) has(system string) bool { return r.on == system || r.on == "" && system != "windows" }

// Choose takes the first method that fits, or the wanted one, even where it does
// not fit.
func Choose(f Facts, wanted Method) (Choice, error) {
	if wanted != "" {
		return choose(f, wanted)
	}
	var c Choice
	for _, r := range rules {
		if !r.has(f.OS) {
			continue
		}
		why, ok := r.fits(f)
		if ok {
			c.Method, c.Why = r.method, why
			return c, nil
		}
		c.Not = append(c.Not, fmt.Sprintf("%s: %s", r.method, why))
	}
	return c, fmt.Errorf("the resolver of %s cannot be told by stsd", f.OS)
}

func choose(f Facts, wanted Method) (Choice, error) {
	i := slices.IndexFunc(rules, func(r rule) bool { return r.method == wanted })
	switch {
	case i < 0:
		return Choice{}, fmt.Errorf("no method %q: there are %s", wanted, words(Methods()))
	case !rules[i].has(f.OS):
		return Choice{}, fmt.Errorf("there is no method %s on %s", wanted, f.OS)
	}
	why, ok := rules[i].fits(f)
	if !ok {
		return Choice{Method: wanted, Why: "asked for", Not: []string{fmt.Sprintf("%s: %s", wanted, why)}}, nil
	}
	return Choice{Method: wanted, Why: why}, nil
}

// stub is where systemd-resolved answers.
var stub = []netip.Addr{netip.MustParseAddr("127.0.0.53"), netip.MustParseAddr("127.0.0.54")}

// asksResolved: when programs ask other servers, systemd-resolved reads those as
// its own, and would stop to if it were given one.
func asksResolved(f Facts) (why string, ok bool) {
	if !f.Resolved {
		return "systemd-resolved does not run", false
	}
	if !slices.ContainsFunc(f.Nameservers, func(a netip.Addr) bool { return slices.Contains(stub, a) }) {
		return "/etc/resolv.conf does not name systemd-resolved (127.0.0.53), so programs do not ask it", false
	}
	return "systemd-resolved runs and /etc/resolv.conf names it", true
}

// delegateSince is the version of systemd in which zones can have servers of
// their own.
const delegateSince = 258

func fitsDelegate(f Facts) (string, bool) {
	why, ok := asksResolved(f)
	switch {
	case !ok:
		return why, false
	case f.ResolvedVersion == 0:
		return "the version of systemd-resolved is not known", false
	case f.ResolvedVersion < delegateSince:
		return fmt.Sprintf("systemd %d cannot give a zone servers of its own; %d can", f.ResolvedVersion, delegateSince), false
	}
	return fmt.Sprintf("%s; version %d gives a zone servers of its own", why, f.ResolvedVersion), true
}

// fitsResolved: before 258 there is one list of servers for all that no link
// answers for. A second server in it would get questions for our zones, and a list
// that was empty keeps the built-in fallback in use, which ours would end.
func fitsResolved(f Facts) (string, bool) {
	why, ok := asksResolved(f)
	switch {
	case !ok:
		return why, false
	case f.ResolvedServers != "":
		return f.ResolvedServers + " gives systemd-resolved servers for all links, which would be asked for members too", false
	case !f.ResolvedLinks:
		return "no link has DNS servers of its own: other names would have nobody left to be asked of", false
	}
	return why, true
}

func fitsDnsmasq(f Facts, folder, who string) (string, bool) {
	if !slices.Contains(f.DnsmasqFolders, folder) {
		return "no dnsmasq runs that reads " + folder, false
	}
	if !slices.ContainsFunc(f.Nameservers, netip.Addr.IsLoopback) {
		return "/etc/resolv.conf names no server of this machine, so programs do not ask " + who, false
	}
	return fmt.Sprintf("%s runs, reads %s, and /etc/resolv.conf names this machine", who, folder), true
}

func words[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}
