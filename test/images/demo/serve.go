package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// options say how a server misbehaves. Each is a flag and, in capitals, a variable: -start-delay or START_DELAY.
type options struct {
	startDelay time.Duration // before it listens; connections are refused until then
	readyDelay time.Duration // after it listens; /healthz answers 503 until then
	ignoreTerm bool          // SIGTERM does nothing: only SIGKILL ends it
	exitAfter  time.Duration // after its start it exits with exitCode; negative: never
	exitCode   int           // default 1
	logFile    string        // lines of boots and of POST /data, in the member's volume
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.DurationVar(&o.startDelay, "start-delay", 0, "wait before listening")
	flags.DurationVar(&o.readyDelay, "ready-delay", 0, "wait before being ready")
	flags.BoolVar(&o.ignoreTerm, "ignore-term", false, "ignore SIGTERM")
	flags.DurationVar(&o.exitAfter, "exit-after", -1, "exit after this time")
	flags.IntVar(&o.exitCode, "exit-code", 1, "code for -exit-after")
	flags.StringVar(&o.logFile, "log-file", "/data/log", "file for the lines of boots and of POST /data")

	var errs []error
	flags.VisitAll(func(f *flag.Flag) {
		name := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value := os.Getenv(name)
		if value == "" {
			return
		}
		if err := f.Value.Set(value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%s: %w", name, value, err))
		}
	})
	errs = append(errs, flags.Parse(args))
	if err := errors.Join(errs...); err != nil {
		return o, fmt.Errorf("%w: %w", errUsage, err)
	}
	return o, nil
}

func serve(args []string) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	obeySignals(o)
	if o.exitAfter >= 0 {
		time.AfterFunc(o.exitAfter, func() { exit(o.exitCode, "after "+o.exitAfter.String()) })
	}
	m := newMember(o.logFile)
	fmt.Printf("demo: boot %d %s v%s\n", m.boot, m.name, version)
	if forkHang("serve") {
		if err := fork(); err != nil {
			return err
		}
	}
	time.Sleep(o.startDelay)
	m.readyAt = time.Now().Add(o.readyDelay)
	fmt.Printf("demo: listening on :%s\n", port())
	return http.ListenAndServe(":"+port(), m.handler())
}

// obeySignals ends the process with code 0 at once, in every phase: process 1 has no default action for SIGTERM.
func obeySignals(o options) {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for s := range got {
			if o.ignoreTerm {
				fmt.Printf("demo: ignoring %s\n", s)
				continue
			}
			exit(0, s.String())
		}
	}()
}

func exit(code int, why string) {
	fmt.Printf("demo: exit %d (%s)\n", code, why)
	os.Exit(code)
}

// member is what one running server knows about itself.
type member struct {
	name    string
	log     string    // path of the log in the volume
	boot    int       // how often a server has started on this volume; 1 without a volume
	readyAt time.Time // set before the first request
	failing atomic.Bool
	writing sync.Mutex // one line at a time
}

// newMember counts this start in the log of the volume, when there is one that can be written.
func newMember(log string) *member {
	name, _ := os.Hostname()
	old, _ := os.ReadFile(log)
	m := &member{name: name, log: log, boot: 1 + boots(string(old))}
	line := fmt.Sprintf("boot %d %s v%s\n", m.boot, m.name, version)
	if err := write(log, line, os.O_APPEND); err != nil {
		fmt.Fprintf(os.Stderr, "demo: no log: %v\n", err)
	}
	return m
}

// boots counts the lines that newMember wrote.
func boots(log string) int {
	n := 0
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "boot ") {
			n++
		}
	}
	return n
}

// ordinal is the number at the end of a member's name, "-" where there is none.
func ordinal(name string) string {
	digits := name[strings.LastIndex(name, "-")+1:]
	if _, err := strconv.ParseUint(digits, 10, 31); err != nil {
		return "-"
	}
	return digits
}

func (m *member) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", m.index)
	mux.HandleFunc("GET /healthz", m.healthz)
	mux.HandleFunc("GET /data", m.getData)
	mux.HandleFunc("POST /data", m.postData)
	mux.HandleFunc("GET /lookup", getLookup)
	mux.HandleFunc("/fail", m.setFailing(true))
	mux.HandleFunc("/ok", m.setFailing(false))
	mux.HandleFunc("/exit", getExit)
	return mux
}

func (m *member) index(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "hostname %s\nversion %s\nordinal %s\nstarts %d\n", m.name, version, ordinal(m.name), m.boot)
}

func (m *member) healthz(w http.ResponseWriter, _ *http.Request) {
	if m.failing.Load() {
		http.Error(w, "failing, as /fail asked", http.StatusServiceUnavailable)
		return
	}
	if left := time.Until(m.readyAt); left > 0 {
		http.Error(w, fmt.Sprintf("ready in %s", left.Round(time.Millisecond)), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (m *member) getData(w http.ResponseWriter, _ *http.Request) {
	text, err := os.ReadFile(m.log)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_, _ = w.Write(text)
}

func (m *member) postData(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	if err := write(m.log, string(text), os.O_APPEND); err != nil {
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
		return
	}
	fmt.Fprintln(w, "ok")
}

func getLookup(w http.ResponseWriter, r *http.Request) {
	answers, err := resolve(r.Context(), cmp.Or(r.FormValue("type"), "a"), r.FormValue("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	fmt.Fprintln(w, strings.Join(answers, "\n"))
}

func (m *member) setFailing(failing bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		m.failing.Store(failing)
		fmt.Fprintf(w, "failing %t\n", failing)
	}
}

func getExit(_ http.ResponseWriter, r *http.Request) {
	code, err := strconv.Atoi(cmp.Or(r.FormValue("code"), "0"))
	if err != nil {
		code = 2
	}
	exit(code, "as /exit asked")
}
