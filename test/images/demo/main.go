// Demo is the server that the demo and the tests run as members of a set. It shows what a member has been given (its
// name, its volume, its names in DNS) and misbehaves on request. Its subcommands let probes and tests work without a
// shell. Standard library only; image: test/images/demo.sh.
//
//	demo [serve]           HTTP server, see the flags in serve.go
//	demo ready             exit 0 when this member's own /healthz answers 200
//	demo lookup NAME       addresses of a name, one a line; -t ptr, srv or cname for other records
//	demo cat FILE          print a file
//	demo write FILE TEXT   replace a file by one line, on disk when it returns
//	demo get URL           print the body; exit 0 for a 2xx answer
//	demo sleep DURATION    exit 0 at the end or on SIGTERM (unless IGNORE_TERM=1)
//	demo hostname [-f]     the host's name, or its full name as hosts and DNS tell it
//	demo env               the environment, sorted
//	demo broken            exit 1 at once
//
// PORT (8080) is where serve listens and ready asks. FORK_HANG=serve, ready or 1 (both) makes that verb leave a child
// behind that ignores SIGTERM and keeps stdout open; ready then hangs as well.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// version is baked in: -ldflags "-X main.version=2". A binary whose version is "broken" exits 1 whatever it is asked.
var version = "dev"

var (
	errBroken = errors.New("broken on purpose")
	errUsage  = errors.New("wrong usage, want one of: serve, ready, lookup, cat, write, get, sleep, hostname, env, broken")
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "demo: %v\n", err)
	if errors.Is(err, errUsage) {
		os.Exit(64)
	}
	os.Exit(1)
}

func run(args []string, out io.Writer) error {
	if version == "broken" {
		return errBroken
	}
	if len(args) == 0 {
		args = []string{"serve"}
	}
	verb, args := args[0], args[1:]
	if verb == "serve" {
		return serve(args)
	}

	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	switch {
	case verb == "ready" && len(args) == 0:
		return ready(ctx)
	case verb == "lookup" && len(args) > 0:
		return lookup(ctx, args, out)
	case verb == "cat" && len(args) == 1:
		return cat(args[0], out)
	case verb == "write" && len(args) == 2:
		return write(args[0], args[1]+"\n", os.O_TRUNC)
	case verb == "get" && len(args) == 1:
		return get(ctx, args[0], out)
	case verb == "sleep" && len(args) == 1:
		return sleep(ctx, args[0])
	case verb == "hostname":
		return hostname(ctx, slices.Contains(args, "-f"), out)
	case verb == "env":
		return env(out)
	case verb == "broken":
		return errBroken
	}
	return fmt.Errorf("%s: %w", verb, errUsage)
}

// ready is the exec probe. With FORK_HANG it leaves a child behind and never returns, as a hung health script does.
func ready(ctx context.Context) error {
	if forkHang("ready") {
		if err := fork(); err != nil {
			return err
		}
		select {}
	}
	return get(ctx, "http://127.0.0.1:"+port()+"/healthz", io.Discard)
}

func lookup(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("lookup", flag.ContinueOnError)
	kind := flags.String("t", "a", "a, ptr, srv or cname")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		return fmt.Errorf("lookup: %w", errUsage)
	}
	answers, err := resolve(ctx, *kind, flags.Arg(0))
	if err != nil {
		return err
	}
	for _, a := range answers {
		fmt.Fprintln(out, a)
	}
	return nil
}

// resolve asks Go's own resolver, which reads hosts and resolv.conf as libc does, and sorts what comes back.
func resolve(ctx context.Context, kind, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var answers []string
	var err error
	switch kind {
	case "a":
		answers, err = net.DefaultResolver.LookupHost(ctx, name)
	case "ptr":
		answers, err = net.DefaultResolver.LookupAddr(ctx, name)
	case "cname":
		var target string
		target, err = net.DefaultResolver.LookupCNAME(ctx, name)
		answers = []string{target}
	case "srv":
		var records []*net.SRV
		_, records, err = net.DefaultResolver.LookupSRV(ctx, "", "", name)
		for _, r := range records {
			answers = append(answers, fmt.Sprintf("%s:%d", r.Target, r.Port))
		}
	default:
		err = fmt.Errorf("record type %q: %w", kind, errUsage)
	}
	slices.Sort(answers)
	return answers, err
}

func cat(path string, out io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(out, f)
	return err
}

// write puts text into a file; it is on disk when write returns. mode is os.O_TRUNC or os.O_APPEND.
func write(path, text string, mode int) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|mode, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return f.Sync()
}

func get(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(out, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("get %s: %s", url, answer.Status)
	}
	return nil
}

func sleep(ctx context.Context, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if ignore, _ := strconv.ParseBool(os.Getenv("IGNORE_TERM")); ignore {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return nil
}

// hostname prints what `hostname` and `hostname -f` print: the full name is the canonical one of the first source
// that knows the host, /etc/hosts before DNS.
func hostname(ctx context.Context, full bool, out io.Writer) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	if full {
		names, err := resolve(ctx, "cname", name)
		if err != nil {
			return err
		}
		name = strings.TrimSuffix(names[0], ".")
	}
	_, err = fmt.Fprintln(out, name)
	return err
}

func env(out io.Writer) error {
	for _, line := range slices.Sorted(slices.Values(os.Environ())) {
		fmt.Fprintln(out, line)
	}
	return nil
}

func port() string { return cmp.Or(os.Getenv("PORT"), "8080") }

// forkHang reports whether FORK_HANG asks this verb to leave a child behind: 1 means every verb that can.
func forkHang(verb string) bool {
	asked := os.Getenv("FORK_HANG")
	return asked == "1" || asked == verb
}

// fork leaves a child behind that keeps stdout open and ignores SIGTERM.
func fork() error {
	child := exec.Command("/proc/self/exe", "sleep", "24h")
	child.Env = append(os.Environ(), "IGNORE_TERM=1")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		return fmt.Errorf("start child: %w", err)
	}
	return nil
}
