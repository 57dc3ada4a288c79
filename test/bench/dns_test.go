// Package bench measures side by side, in one run, and asserts nothing: figures depend on the machine, ratios less so.
package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stsd/stsd/dns"
)

const (
	members = 1000 // names that are asked for
	serving = "STSD_BENCH_SERVE"
	atAddr  = "STSD_BENCH_ADDR"
)

func TestMain(m *testing.M) {
	addr, _ := netip.ParseAddrPort(os.Getenv(atAddr))
	switch os.Getenv(serving) {
	case "stsd":
		serveNames(addr)
	case "echo":
		serveEcho(addr)
	default:
		os.Exit(m.Run())
	}
}

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 87, byte(i >> 8), byte(i)}) }

// serveNames is the server as the daemon has it, without a limit per source, until it is told to end. It then says what
// a query allocated.
func serveNames(addr netip.AddrPort) {
	set := dns.Set{Name: "web", TTL: 5 * time.Second, NegativeTTL: 2 * time.Second}
	for i := range members {
		set.Members = append(set.Members, dns.Member{Name: fmt.Sprintf("web-%d", i), Address: address(i), Running: true, Ready: true})
	}
	s := dns.NewServer(dns.Config{Rate: -1, ForwardOff: true})
	s.Publish(dns.Build(dns.Zone{Sets: []dns.Set{set}}))
	s.SetListeners([]netip.AddrPort{addr})
	ctx, stop := context.WithCancel(context.Background())
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	onTerm(stop)
	s.Run(ctx)
	goruntime.ReadMemStats(&after)
	c := s.Counters()
	fmt.Printf("allocations %.3f fast %.3f\n", float64(after.Mallocs-before.Mallocs)/float64(max(c.Queries, 1)), float64(c.Fast)/float64(max(c.Queries, 1)))
}

// serveEcho sends each packet back as a response: what the system calls alone cost.
func serveEcho(addr netip.AddrPort) {
	share := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	}}
	var echoing sync.WaitGroup
	for range goruntime.GOMAXPROCS(0) {
		conn, err := share.ListenPacket(context.Background(), "udp", addr.String())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		udp := conn.(*net.UDPConn)
		udp.SetReadBuffer(1 << 20)
		onTerm(func() { udp.Close() })
		echoing.Go(func() { echo(udp) })
	}
	echoing.Wait()
	fmt.Println("allocations 0.000 fast 0")
}

func echo(udp *net.UDPConn) {
	buf := make([]byte, 4096)
	for {
		n, from, err := udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		buf[2] |= 0x80
		udp.WriteToUDPAddrPort(buf[:n], from)
	}
}

var onTerms struct {
	sync.Once
	sync.Mutex
	calls []func()
}

func onTerm(f func()) {
	onTerms.Lock()
	onTerms.calls = append(onTerms.calls, f)
	onTerms.Unlock()
	onTerms.Do(func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		go func() {
			<-signals
			onTerms.Lock()
			defer onTerms.Unlock()
			for _, f := range onTerms.calls {
				f()
			}
		}()
	})
}

// rival is one of the servers that are compared.
type rival struct {
	name    string
	port    int
	command func(r *rival) *exec.Cmd
	process *exec.Cmd
	said    bytes.Buffer

	rate, cpu   []float64 // per round: queries per second, microseconds of the server's time per query
	p50, p99    time.Duration
	lost        float64
	allocations string
	resident    int
}

// TestDNS prints figures for `make bench-dns`.
func TestDNS(t *testing.T) {
	if os.Getenv("STSD_BENCH_DNS") == "" {
		t.Skip("measures for a minute: make bench-dns")
	}
	coredns := os.Getenv("STSD_BENCH_COREDNS")
	dir := t.TempDir()
	queries := write(t, dir, "queries", func(i int) string { return fmt.Sprintf("web-%d.svc A", i) })
	hosts := write(t, dir, "hosts", func(i int) string { return fmt.Sprintf("%s web-%d.svc", address(i), i) })
	zone := write(t, dir, "zone", func(i int) string {
		head := ""
		if i == 0 {
			head = "$ORIGIN svc.\n@ 2 IN SOA ns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 2\n@ 5 IN NS ns.dns.cluster.local.\n"
		}
		return head + fmt.Sprintf("web-%d 5 IN A %s", i, address(i))
	})
	self := func(mode string) func(*rival) *exec.Cmd {
		return func(r *rival) *exec.Cmd {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), serving+"="+mode, fmt.Sprintf("%s=127.0.0.1:%d", atAddr, r.port))
			return cmd
		}
	}
	core := func(origin, plugin string) func(*rival) *exec.Cmd {
		return func(r *rival) *exec.Cmd {
			file := filepath.Join(dir, fmt.Sprint("Corefile.", r.port))
			text := fmt.Sprintf("%s:%d {\n  bind 127.0.0.1\n  %s\n}\n", origin, r.port, plugin)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return exec.Command(coredns, "-conf", file)
		}
	}
	rivals := []*rival{
		{name: "UDP echo", port: 15301, command: self("echo")},
		{name: "stsd", port: 15302, command: self("stsd")},
	}
	if coredns != "" {
		rivals = append(rivals,
			&rival{name: "CoreDNS file", port: 15303, command: core("svc", "file "+zone)},
			&rival{name: "CoreDNS hosts", port: 15304, command: core(".", "hosts "+hosts)})
	}
	for _, r := range rivals {
		r.start(t)
	}
	for range rounds() {
		for _, r := range rivals {
			r.round(t, queries)
		}
	}
	for _, r := range rivals {
		r.latency(t, queries)
		r.stop(t)
	}
	report(t, rivals)
}

func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("STSD_BENCH_ROUNDS")); err == nil {
		return n
	}
	return 3
}

func write(t *testing.T, dir, name string, line func(i int) string) string {
	t.Helper()
	var b strings.Builder
	for i := range members {
		b.WriteString(line(i) + "\n")
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (r *rival) start(t *testing.T) {
	t.Helper()
	r.process = pinned("0", r.command(r))
	r.process.Stdout, r.process.Stderr = &r.said, os.Stderr
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.process.Process.Kill() })
	for deadline := time.Now().Add(20 * time.Second); !r.answers(); {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer", r.name)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// apart: do server and clients have cores of their own?
func apart() bool { return goruntime.NumCPU() > 1 && os.Getenv("STSD_BENCH_UNPINNED") == "" }

// pinned keeps a command to some cores, where there are two or more: server and client then do not take turns on one.
func pinned(cores string, cmd *exec.Cmd) *exec.Cmd {
	taskset, err := exec.LookPath("taskset")
	if err != nil || !apart() {
		return cmd
	}
	if first, open := strings.CutSuffix(cores, "-"); open {
		cores = fmt.Sprintf("%s-%d", first, goruntime.NumCPU()-1)
	}
	cmd.Args = append([]string{taskset, "-c", cores, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = taskset
	return cmd
}

func (r *rival) answers() bool {
	conn, err := net.Dial("udp", r.addr())
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	conn.Write([]byte("\x07\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05web-0\x03svc\x00\x00\x01\x00\x01"))
	n, err := conn.Read(make([]byte, 512))
	return err == nil && n > 12
}

func (r *rival) addr() string { return fmt.Sprintf("127.0.0.1:%d", r.port) }

func (r *rival) dnsperf(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{"-s", "127.0.0.1", "-p", fmt.Sprint(r.port), "-W"}, args...)
	out, err := pinned("1-", exec.Command("dnsperf", args...)).CombinedOutput()
	if err != nil {
		t.Fatalf("dnsperf: %v\n%s", err, out)
	}
	return string(out)
}

// round loads the server for three seconds.
func (r *rival) round(t *testing.T, queries string) {
	t.Helper()
	before := r.busy(t)
	out := r.dnsperf(t, "-d", queries, "-c", "8", "-q", "200", "-l", "3")
	done := number(out, `Queries completed:\s+(\d+)`)
	r.cpu = append(r.cpu, float64((r.busy(t)-before).Microseconds())/max(done, 1))
	r.rate = append(r.rate, number(out, `Queries per second:\s+([\d.]+)`))
	r.lost = max(r.lost, number(out, `Queries lost:\s+\d+ \(([\d.]+)%\)`))
	if len(r.rate) == rounds() {
		r.resident = r.memory(t)
	}
}

// latency asks at a rate that all of them keep.
func (r *rival) latency(t *testing.T, queries string) {
	t.Helper()
	out := r.dnsperf(t, "-d", queries, "-c", "8", "-q", "200", "-l", "3", "-Q", "5000", "-v")
	var all []time.Duration
	for _, m := range regexp.MustCompile(`(?m)^> NOERROR \S+ \S+ ([\d.]+)`).FindAllStringSubmatch(out, -1) {
		if s, err := strconv.ParseFloat(m[1], 64); err == nil {
			all = append(all, time.Duration(s*float64(time.Second)))
		}
	}
	if len(all) == 0 {
		t.Logf("%s: no latencies in what dnsperf says", r.name)
		return
	}
	slices.Sort(all)
	r.p50, r.p99 = all[len(all)/2], all[len(all)*99/100]
}

func number(text, pattern string) float64 {
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(m[1], 64)
	return n
}

// busy is the processor time of the server so far; proc(5) counts it in hundredths of a second.
func (r *rival) busy(t *testing.T) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// memory is what is resident, in MB.
func (r *rival) memory(t *testing.T) int {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", r.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(text)[0])
			return kb / 1024
		}
	}
	return 0
}

func (r *rival) stop(t *testing.T) {
	t.Helper()
	r.process.Process.Signal(syscall.SIGTERM)
	r.process.Wait()
	r.allocations = "-"
	if m := regexp.MustCompile(`allocations ([\d.]+)`).FindStringSubmatch(r.said.String()); m != nil {
		r.allocations = m[1]
	}
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

func report(t *testing.T, rivals []*rival) {
	t.Helper()
	floor := rivals[0]
	cores := "the server has one of"
	if !apart() {
		cores = "server and clients share"
	}
	fmt.Printf("\n%d names, %d rounds of 3 s, 8 clients, 200 outstanding; %s %d cores\n\n", members, rounds(), cores, goruntime.NumCPU())
	fmt.Printf("%-14s %9s %8s %9s %8s %9s %9s %8s %7s %6s\n", "server", "kqps", "to echo", "cpu µs/q", "to echo", "p50 µs", "p99 µs", "alloc/q", "lost %", "MB")
	for _, r := range rivals {
		fmt.Printf("%-14s %9.1f %8.2f %9.1f %8.2f %9d %9d %8s %7.2f %6d\n", r.name, median(r.rate)/1000, median(r.rate)/median(floor.rate),
			median(r.cpu), median(r.cpu)/median(floor.cpu), r.p50.Microseconds(), r.p99.Microseconds(), r.allocations, r.lost, r.resident)
	}
	for _, r := range rivals[2:] {
		fmt.Printf("stsd answers %.1f times as many as %s\n", median(rivals[1].rate)/median(r.rate), r.name)
	}
	fmt.Println("p50 and p99 at 5000 queries a second")
}
