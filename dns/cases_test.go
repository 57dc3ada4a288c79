package dns

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// designCase is one of the seventy of the design. Its sets "web" and "one" publish "ready", "db" publishes "running".
type designCase struct {
	n       int
	says    string
	answers []answerRow
	proof   string // tests that prove what is no single answer, each "folder.Name"
}

// answerRow is what one client gets for one question.
type answerRow struct{ what, client, query, want string }

func designCases() []designCase {
	nodata := func(zone string) string { return "NOERROR" + soaOf(zone) }
	nx := func(zone string) string { return "NXDOMAIN" + soaOf(zone) }
	const cluster, foreign = "cluster.local.", "REFUSED"
	return []designCase{
		{n: 1, says: "web-0.svc A: NOERROR AA, 1 A 10.87.0.10 TTL 5", answers: []answerRow{
			{"a member", container, "web-0.svc. A", "NOERROR | web-0.svc. 5 A 10.87.0.10"},
		}},
		{n: 2, says: "web.svc A: 2 A (.10 .11), not .12", answers: []answerRow{
			{"a set lists ready members", container, "web.svc. A", "NOERROR | web.svc. 5 A 10.87.0.10 | web.svc. 5 A 10.87.0.11"},
		}},
		{n: 3, says: "web-0.web.L A: 10.87.0.10", answers: []answerRow{
			{"a member's long name", container, "web-0.web." + long + " A", "NOERROR | web-0.web." + long + " 5 A 10.87.0.10"},
		}},
		{n: 4, says: "web.L A x200: set always {.10,.11}; each first in 30-70 %", answers: []answerRow{
			{"a set's long name", container, "web." + long + " A", "NOERROR | web." + long + " 5 A 10.87.0.10 | web." + long + " 5 A 10.87.0.11"},
		}, proof: "dns.TestTheOrderTurns"},
		{n: 5, says: "web-2.svc A: NXDOMAIN AA SOA", answers: []answerRow{
			{"a member that is not ready", container, "web-2.svc. A", nx("svc.")},
		}},
		{n: 6, says: "db-0.svc A; db.svc A: 10.87.1.10 (publish=running)", answers: []answerRow{
			{"a running member, publish running", container, "db-0.svc. A", "NOERROR | db-0.svc. 5 A 10.87.1.10"},
			{"its set", container, "db.svc. A", "NOERROR | db.svc. 5 A 10.87.1.10"},
		}},
		{n: 7, says: "web-0.svc AAAA: NOERROR, 0 answers, SOA (never NXDOMAIN)", answers: []answerRow{
			{"AAAA of an A is NODATA", container, "web-0.svc. AAAA", nodata("svc.")},
		}},
		{n: 8, says: "web-2.svc AAAA: NXDOMAIN SOA", answers: []answerRow{
			{"AAAA of a hidden member", container, "web-2.svc. AAAA", nx("svc.")},
		}},
		{n: 9, says: "web-9.svc A: NXDOMAIN SOA", answers: []answerRow{
			{"an ordinal that is not there", container, "web-9.svc. A", nx("svc.")},
		}},
		{n: 10, says: "none.svc A; none.L A: NXDOMAIN SOA", answers: []answerRow{
			{"a set of nobody", container, "none.svc. A", nx("svc.")},
			{"its long name", container, "none." + long + " A", nx(cluster)},
		}},
		{n: 11, says: "nosuch.svc A; nosuch.L A: NXDOMAIN SOA", answers: []answerRow{
			{"no such set", container, "nosuch.svc. A", nx("svc.")},
			{"its long name", container, "nosuch." + long + " A", nx(cluster)},
		}},
		{n: 12, says: "WeB-0.SvC A: 10.87.0.10, question and owner case echoed byte for byte", answers: []answerRow{
			{"case is kept", container, "WeB-0.SvC. A", "NOERROR | WeB-0.SvC. 5 A 10.87.0.10"},
		}, proof: "dns.TestFlagsAndQuestionOfAReply"},
		{n: 13, says: "_http._tcp.web.L SRV: 2 SRV prio 0 port 8080 targets web-0/1.web.L + 2 glue A", answers: []answerRow{
			{"a port", container, "_http._tcp.web." + long + " SRV", "NOERROR | _http._tcp.web." + long + " 5 SRV 0 1 8080 web-0.web." + long +
				" | _http._tcp.web." + long + " 5 SRV 0 1 8080 web-1.web." + long + " + web-0.web." + long + " 5 A 10.87.0.10 + web-1.web." + long + " 5 A 10.87.0.11"},
		}},
		{n: 14, says: "_http._tcp.web.svc SRV: targets web-0.svc. web-1.svc.", answers: []answerRow{
			{"targets are in the zone asked", container, "_http._tcp.web.svc. SRV", "NOERROR | _http._tcp.web.svc. 5 SRV 0 1 8080 web-0.svc." +
				" | _http._tcp.web.svc. 5 SRV 0 1 8080 web-1.svc. + web-0.svc. 5 A 10.87.0.10 + web-1.svc. 5 A 10.87.0.11"},
			{"of another namespace", container, "_http._tcp.web.other.svc. SRV", nx("svc.")},
		}},
		{n: 15, says: "web.L SRV: 4 SRV (8080 and 9000 for each ready pod)", proof: "dns.TestTheSetsNameHasAllPortsOfAllListedMembers"},
		{n: 16, says: "one.L SRV: NODATA SOA (portless)", answers: []answerRow{
			{"a set without ports", container, "one." + long + " SRV", nodata(cluster)},
		}},
		{n: 17, says: "_nosuch._tcp.web.L SRV; _http._udp.web.L SRV: NXDOMAIN SOA", answers: []answerRow{
			{"no such port", container, "_nosuch._tcp.web." + long + " SRV", nx(cluster)},
			{"no such protocol", container, "_http._udp.web." + long + " SRV", nx(cluster)},
		}},
		{n: 18, says: "_tcp.web.L A: NODATA SOA (empty non-terminal)", answers: []answerRow{
			{"an empty non-terminal", container, "_tcp.web." + long + " A", nodata(cluster)},
		}},
		{n: 19, says: "_http._tcp.web.L A: NODATA SOA", answers: []answerRow{
			{"a port has no address", container, "_http._tcp.web." + long + " A", nodata(cluster)},
		}},
		{n: 20, says: "web-0.web.L SRV: 2 SRV of that pod (CoreDNS compatible)", answers: []answerRow{
			{"SRV of a member", container, "one-0.one." + long + " SRV", nodata(cluster)},
		}, proof: "dns.TestAMembersNameHasItsPorts"},
		{n: 21, says: "10.0.87.10.in-addr.arpa PTR: web-0.web.L TTL 5", answers: []answerRow{
			{"an address", container, "10.0.87.10.in-addr.arpa. PTR", "NOERROR | 10.0.87.10.in-addr.arpa. 5 PTR web-0.web." + long},
		}},
		{n: 22, says: "12.0.87.10.in-addr.arpa PTR (not ready); 99.0.87.10… (free): NXDOMAIN, not forwarded", answers: []answerRow{
			{"an address that is not ready", container, "12.0.87.10.in-addr.arpa. PTR", nx("0.87.10.in-addr.arpa.")},
			{"a free address", container, "99.0.87.10.in-addr.arpa. PTR", nx("0.87.10.in-addr.arpa.")},
			{"another spelling is another name", container, "010.0.87.10.in-addr.arpa. PTR", nx("0.87.10.in-addr.arpa.")},
			{"the parent of addresses", container, "0.87.10.in-addr.arpa. PTR", nodata("0.87.10.in-addr.arpa.")},
			{"a parent of nothing", container, "3.87.10.in-addr.arpa. PTR", nx("3.87.10.in-addr.arpa.")},
		}, proof: "dns.TestOwnNamesAreNeverForwarded"},
		{n: 23, says: "1.2.0.192.in-addr.arpa PTR: forwarded", answers: []answerRow{
			{"a foreign address", container, "1.2.0.192.in-addr.arpa. PTR", foreign},
		}, proof: "dns.TestForeignNamesAreForwarded"},
		{n: 24, says: "cluster.local SOA / NS: SOA serial > 0; NS ns.dns.cluster.local + glue", answers: []answerRow{
			{"SOA", container, "cluster.local. SOA", "NOERROR | cluster.local. 2 SOA ns.dns.cluster.local. 7 2"},
			{"NS", container, "cluster.local. NS", "NOERROR | cluster.local. 5 NS ns.dns.cluster.local. + ns.dns.cluster.local. 5 A 10.87.0.1"},
			{"the name server is the client's gateway", stranger, "ns.dns.cluster.local. A", "NOERROR | ns.dns.cluster.local. 5 A 10.87.8.1"},
		}},
		{n: 25, says: "cluster.local A; svc.cluster.local A; L A: NODATA SOA", answers: []answerRow{
			{"apex", container, "cluster.local. A", nodata(cluster)},
			{"svc", container, "svc.cluster.local. A", nodata(cluster)},
			{"namespace", container, long + " A", nodata(cluster)},
			{"short apex", container, "svc. A", nodata("svc.")},
		}},
		{n: 26, says: "nons.svc.cluster.local A: NXDOMAIN SOA", answers: []answerRow{
			{"no such namespace", container, "nons.svc.cluster.local. A", nx(cluster)},
		}},
		{n: 27, says: "web.other.svc.cluster.local A: 10.87.9.10 (if source may see ns other), else NXDOMAIN", answers: []answerRow{
			{"another namespace", container, "web.other.svc.cluster.local. A", "NOERROR | web.other.svc.cluster.local. 5 A 10.87.9.10"},
		}},
		{n: 28, says: "web.svc from a client of ns other: 10.87.9.10 (client's namespace)", answers: []answerRow{
			{"the client's namespace", stranger, "web.svc. A", "NOERROR | web.svc. 5 A 10.87.9.10"},
			{"of a name without suffix", stranger, "web. A", "NOERROR | web. 5 A 10.87.9.10"},
			{"default for the host", "127.0.0.1", "web-1. A", "NOERROR | web-1. 5 A 10.87.0.11"},
		}},
		{n: 29, says: "dns-version.cluster.local TXT: '1.1.0' TTL 28800", answers: []answerRow{
			{"version", container, "dns-version.cluster.local. TXT", `NOERROR | dns-version.cluster.local. 28800 TXT "1.1.0"`},
		}},
		{n: 30, says: "web. A, web-0.web. A, web-0.web.default. A: answered directly", answers: []answerRow{
			{"web.", container, "one. A", "NOERROR | one. 5 A 10.87.1.20"},
			{"web-0.web.", container, "web-0.web. A", "NOERROR | web-0.web. 5 A 10.87.0.10"},
			{"web-0.", container, "web-0. A", "NOERROR | web-0. 5 A 10.87.0.10"},
			{"web-0.web.default.", container, "web-0.web.default. A", "NOERROR | web-0.web.default. 5 A 10.87.0.10"},
			{"web.default.svc.", container, "one.default.svc. A", "NOERROR | one.default.svc. 5 A 10.87.1.20"},
			{"web-0.web.other.svc.", container, "web-0.web.other.svc. A", "NOERROR | web-0.web.other.svc. 5 A 10.87.9.10"},
			{"a known member that is hidden", container, "web-2.web. A", nx(".")},
		}},
		{n: 31, says: "unknownlabel. A: NXDOMAIN, never forwarded", answers: []answerRow{
			{"single labels stay here", container, "unknownlabel. A", nx(".")},
			{".local stays here", container, "printer.local. A", nx(".")},
			{"localhost stays here", container, "a.localhost. A", nx(".")},
		}, proof: "dns.TestOwnNamesAreNeverForwarded"},
		{n: 32, says: "*.web.L A; any.web.L A: NXDOMAIN (no wildcards)", answers: []answerRow{
			{"no wildcards", container, "*.web." + long + " A", nx(cluster)},
			{"no any", container, "any.web." + long + " A", nx(cluster)},
		}},
		{n: 33, says: "a.b.c.d.web.L A: NXDOMAIN", answers: []answerRow{
			{"too many labels", container, "a.b.c.d.web." + long + " A", nx(cluster)},
		}},
		{n: 34, says: "web-0.svc MX, TXT, HTTPS, CAA, DS, TYPE65280: NODATA SOA", answers: []answerRow{
			{"MX", container, "web-0.svc. MX", nodata("svc.")},
			{"TXT", container, "web-0.svc. TXT", nodata("svc.")},
			{"HTTPS", container, "web-0.svc. HTTPS", nodata("svc.")},
			{"CAA", container, "web-0.svc. CAA", nodata("svc.")},
			{"DS", container, "web-0.svc. DS", nodata("svc.")},
			{"an unknown type", container, "web-0.svc. TYPE65280", nodata("svc.")},
		}},
		{n: 35, says: "web-0.svc ANY: HINFO RFC8482, ≤ 1 RR", answers: []answerRow{
			{"ANY", container, "web-0.svc. ANY", `NOERROR | web-0.svc. 5 HINFO "RFC8482"`},
			{"ANY of nothing", container, "web-9.svc. ANY", nx("svc.")},
		}},
		{n: 36, says: "svc AXFR over TCP, IXFR over UDP: REFUSED", answers: []answerRow{
			{"AXFR", container, "svc. AXFR", "REFUSED"},
			{"IXFR", container, "svc. IXFR", "REFUSED"},
		}, proof: "dns.TestPacketsThatAreNoQuestion"},
		{n: 37, says: "class CH version.bind TXT: REFUSED", proof: "dns.TestPacketsThatAreNoQuestion"},
		{n: 38, says: "EDNS size 4096, DO=1: OPT in reply, size 1232, DO echoed, AD=0", proof: "dns.TestEDNS"},
		{n: 39, says: "EDNS version 1: BADVERS with OPT version 0", proof: "dns.TestEDNS"},
		{n: 40, says: "unknown EDNS option + cookie: NOERROR, OPT without them", proof: "dns.TestEDNS"},
		{n: 41, says: "EDNS size 0 / 100: treated as 512", proof: "dns.TestAnswersThatDoNotFit"},
		{n: 42, says: "set with 60 ready pods, A, no EDNS: ≤ 512 B, TC=1, ≥ 25 A in it; repeated: different subsets", proof: "dns.TestAnswersThatDoNotFit dns.TestTheOrderTurns"},
		{n: 43, says: "same over TCP: 60 A, TC=0", proof: "dns.TestAnswersThatDoNotFit"},
		{n: 44, says: "same, EDNS 1232: fits or TC per size, never > 1232", proof: "dns.TestAnswersThatDoNotFit"},
		{n: 45, says: "SRV of that set, no EDNS: glue dropped first, then TC", proof: "dns.TestAnswersThatDoNotFit"},
		{n: 46, says: "packet with QR=1; 11 bytes; empty datagram: no reply, alive", proof: "dns.TestPacketsThatAreNoQuestion dns.TestBadPacketsDoNotEndTheServer"},
		{n: 47, says: "12-byte header QD=1; QD=0; QD=2: FORMERR, **process alive**", proof: "dns.TestPacketsThatAreNoQuestion dns.TestBadPacketsDoNotEndTheServer"},
		{n: 48, says: "pointer loop, label 64, name 256, cut name, OPT rdlen beyond end, 2 OPTs: FORMERR, alive", proof: "dns.TestPacketsThatAreNoQuestion"},
		{n: 49, says: "opcode NOTIFY, UPDATE, STATUS, 15: NOTIMP", proof: "dns.TestPacketsThatAreNoQuestion"},
		{n: 50, says: "Z, AD, CD bits set: cleared in reply (CD may be copied when forwarding)", proof: "dns.TestFlagsAndQuestionOfAReply"},
		{n: 51, says: "TCP: 3 pipelined queries, then half-written length, idle: 3 answers; closed after 5 s; others unaffected", proof: "dns.TestServesUDPAndTCP dns.TestAHalfQueryIsClosed dns.TestConnectionsAreLimitedPerSource"},
		{n: 52, says: "source outside the ACL: no reply; counter", proof: "dns.TestOthersGetSilence"},
		{n: 53, says: "5000 qps from one source: ≤ limit answered, TC slips, other source unaffected", proof: "dns.TestASourceMayAskSoOften dns.TestAFloodIsCutAndOthersAreServed"},
		{n: 54, says: "example.test A, upstream ok / NXDOMAIN / SERVFAIL: passed through, AA as upstream, RA=1", answers: []answerRow{
			{"foreign", container, "example.test. A", foreign},
			{"foreign, below a name of ours", container, "mail.web.default. A", foreign},
			{"the root", container, ". NS", foreign},
		}, proof: "dns.TestForeignNamesAreForwarded"},
		{n: 55, says: "upstream silent: SERVFAIL within 4.5 s; own names still < 5 ms meanwhile", proof: "dns.TestASilentServerIsServfailAndHoldsUpNobody"},
		{n: 56, says: "upstream answers with wrong id / wrong question / from other port: ignored", proof: "dns.TestForgedAnswersAreIgnored dns.TestEachForwardHasItsOwnID"},
		{n: 57, says: "upstream = own address: dropped from list, warning, no loop", proof: "dns.TestWeAreNeverForwardedTo"},
		{n: 58, says: "host view: example.test A: REFUSED; web-0.svc → (VM mode) 127.87.* else pod IP", proof: "dns.TestWhoIsForwardedFor dns.TestAMemberIsFoundWhereTheClientIs"},
		{n: 59, says: "web-2 becomes ready: in web.svc within 100 ms of the state change", proof: "dns.TestPublishIsSeenAtOnce daemon.TestAChangeIsSeenWithin50ms"},
		{n: 60, says: "delete web-1: gone from DNS before SIGTERM is sent", proof: "dns.TestPublishIsSeenAtOnce daemon.TestAMemberLeavesTheSetsNameBeforeItIsStopped"},
		{n: 61, says: "recreate web-1: same IP; A identical; old TCP peers get RST", proof: "daemon.TestAMemberComesBackUnderItsAddress test/e2e.TestPeersOfAMemberThatCameBackAreReset"},
		{n: 62, says: "web-1's slot with publish=always, container down: A present, not in web.svc", proof: "dns.TestASetWithNobodyReadyIsNoDataWhileItsMembersHaveNames"},
		{n: 63, says: "stsd SIGKILL + restart with held socket during 200 lookups: 0 failures, answers from snapshot before the engine lists", proof: "dns.TestARestartLosesNoQuery daemon.TestTheStoredNamesAnswerBeforeTheEngine test/e2e.TestAKilledDaemonLosesNoLookUp test/e2e.TestLookUpsOfMembersGoOnOverKillsOfTheDaemon"},
		{n: 64, says: "engine unreachable at start, no snapshot: SERVFAIL for own names, never NXDOMAIN", proof: "dns.TestNothingIsKnownBeforeTheFirstSnapshot dns.TestIgnoranceIsNoDenial"},
		{n: 65, says: "getaddrinfo in real containers: glibc, musl, Go, Java for web, web-0.web, web-0.svc, FQDN; user net, default bridge, host, internal: all resolve, < 50 ms", proof: "test/e2e.TestResolversInContainers test/e2e.TestJavaFindsMembers"},
		{n: 66, says: "peer-finder loop: LookupSRV('','','web') in a container: FQDN targets, 3 first labels = web-N.web.default", proof: "dns.TestGosOwnResolverFindsPeers"},
		{n: 67, says: "dnsmasq and systemd-resolved in front: AAAA then A of a new name: A found (no negative trap); resolved does not log 'degraded feature set'", proof: "test/e2e.TestInstallOnAMachine"},
		{n: 68, says: "set named web-0 while set web exists: rejected at admission", proof: "jobspecs.TestClash"},
		{n: 69, says: "2 queries with same id from same port (A, AAAA) at once: both answered, right types", proof: "dns.TestTwoQuestionsWithOneIDFromOnePort"},
		{n: 70, says: "10 000 sets x 3 pods snapshot build: < 100 ms, swap does not stall queries", proof: "dns.TestALargeSnapshotIsBuiltInAMoment"},
	}
}

func TestCases(t *testing.T) {
	t.Parallel()
	s := Build(fixture())
	for i, c := range designCases() {
		if c.n != i+1 || len(c.answers) == 0 && c.proof == "" {
			t.Errorf("case %d stands at %d and has %d answers and proof %q", c.n, i+1, len(c.answers), c.proof)
		}
		for _, row := range c.answers {
			name, qtype := cutQuery(row.query)
			got := s.Answer(ip(row.client), name, qtype)
			if got.String() != row.want {
				t.Errorf("%d %s: %s for %s\n got %s (%s)\nwant %s", c.n, row.what, row.query, row.client, got, got.Why, row.want)
			}
			if got.Why == "" {
				t.Errorf("%d %s: no reason given", c.n, row.what)
			}
		}
	}
	if n := len(designCases()); n != 70 {
		t.Errorf("%d cases, want 70", n)
	}
}

// A proof that was renamed or dropped is missed here.
func TestEveryProofOfACaseIsThere(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	for _, folder := range []string{"dns", "daemon", "jobspecs", "test/e2e"} {
		files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok {
					tests[folder+"."+f.Name.Name] = true
				}
			}
		}
	}
	for _, c := range designCases() {
		for _, proof := range strings.Fields(c.proof) {
			if !tests[proof] {
				t.Errorf("case %d (%s) is proved by %s, which is not there", c.n, c.says, proof)
			}
		}
	}
}

// The defaults of the language are member_names = "always" and set_name = "peers". These cases then have other answers;
// docs/dns.md lists them with the reason.
func TestCasesThatTheDefaultsChange(t *testing.T) {
	t.Parallel()
	z := fixture()
	for i := range z.Sets {
		z.Sets[i].MemberNames, z.Sets[i].SetName = "", ""
	}
	s := Build(z)
	var changed, forPeers []int
	for _, c := range designCases() {
		for _, row := range c.answers {
			name, qtype := cutQuery(row.query)
			if s.Answer(ip(row.client), name, qtype).String() != row.want {
				changed = append(changed, c.n)
			} else if row.client == container && s.Answer(ip("10.87.0.11"), name, qtype).String() != row.want {
				forPeers = append(forPeers, c.n)
			}
		}
	}
	if got, want := slices.Compact(changed), []int{5, 6, 8, 22, 30}; !slices.Equal(got, want) {
		t.Errorf("the defaults change cases %v, want %v", got, want)
	}
	if got, want := slices.Compact(forPeers), []int{2, 4, 13, 14}; !slices.Equal(got, want) {
		t.Errorf("and for members of web cases %v, want %v", got, want)
	}
}
