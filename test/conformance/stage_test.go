package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stsd/stsd/daemon"
	"github.com/stsd/stsd/daemon/api"
	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/sim"
)

// stage is a simulated host with a real daemon on it, in a time of its own. The
// daemon may be stopped and started again; the host goes on.
type stage struct {
	*testing.T
	*daemon.Daemon
	world *sim.World
	dir   string
	hooks daemon.Hooks
	end   func() // stops the daemon
	watch func() // looks at the host whenever it has settled
}

// images are what runs on the host.
var images = map[string]sim.Program{
	"app:1":      {},
	"app:2":      {},
	"app:3":      {},
	"slow:1":     {ReadyAfter: 20 * time.Second},
	"never:1":    {NeverReady: true},
	"crash:1":    {ExitAfter: 3 * time.Second, ExitCode: 1},
	"finish:1":   {ExitAfter: 30 * time.Second},
	"lingers:1":  {TermTime: 4 * time.Second},
	"stubborn:1": {IgnoresTerm: true},
}

var web = jobspecs.Key{Namespace: "default", Name: "web"}

// story runs f on a stage. What the design promises of ordinals and volumes is
// checked by the simulator all the time.
func story(f func(*stage)) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			s := &stage{T: t, dir: dir, watch: func() {}}
			s.boot()
			defer func() {
				s.end()
				if v := s.world.Violations(); len(v) > 0 {
					t.Errorf("a promise was broken: %s", strings.Join(v, "; "))
				}
			}()
			f(s)
		})
	}
}

// inBoth runs a story with an ordered and with a parallel set.
func inBoth(f func(s *stage, manage string)) func(*testing.T) {
	return func(t *testing.T) {
		for _, m := range []string{"manage=ordered", "manage=parallel"} {
			t.Run(m, story(func(s *stage) { f(s, m) }))
		}
	}
}

// inAll is inBoth under every retention of volumes.
func inAll(f func(s *stage, opts string)) func(*testing.T) {
	return func(t *testing.T) {
		for _, r := range []string{"retain:retain", "retain:delete", "delete:retain", "delete:delete"} {
			for _, m := range []string{"ordered", "parallel"} {
				opts := "claim=data:" + r + " manage=" + m
				t.Run(opts, story(func(s *stage) { f(s, opts) }))
			}
		}
	}
}

// boot starts the daemon on the store and the host that are there.
func (s *stage) boot() {
	d, err := daemon.New(daemon.Config{
		DataDir: s.dir, DNSOff: true, Store: store.Options{NoSync: true},
		Engine: func(id string, h daemon.Hooks) (daemon.Parts, error) {
			s.hooks = h
			if s.world == nil {
				s.world = sim.New(sim.Config{Daemon: id})
				for ref, p := range images {
					s.world.Program(ref, p)
				}
			}
			e := sim.NewEngine(s.world)
			return daemon.Parts{Engine: e, Volumes: s.world.Volumes(), Run: e.Run, Name: func(context.Context) (string, error) { return "sim", nil }}, nil
		},
	})
	if err != nil {
		s.Fatal(err)
	}
	s.Daemon = d
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	s.end = func() {
		cancel()
		if err := <-done; err != nil {
			s.Error(err)
		}
		s.end = func() {}
	}
	synctest.Wait()
}

// pass lets time pass and looks twice a second.
func (s *stage) pass(d time.Duration) { s.until(d, func() bool { return false }) }

func (s *stage) until(d time.Duration, done func() bool) bool {
	for end := time.Now().Add(d); ; {
		synctest.Wait()
		s.watch()
		if done() {
			return true
		}
		if !time.Now().Before(end) {
			return false
		}
		time.Sleep(min(500*time.Millisecond, time.Until(end)))
	}
}

// rest waits until there is nothing left to do.
func (s *stage) rest() {
	s.Helper()
	if !s.until(10*time.Minute, s.rests) {
		s.Fatalf("it does not come to rest: %+v; host: %s", s.status(), s.host())
	}
}

func (s *stage) rests() bool {
	st := s.status()
	return st.ObservedGeneration == st.Generation && condition(st, jobspecs.CondAvailable).Status && !condition(st, jobspecs.CondProgressing).Status
}

func condition(s jobspecs.Status, kind string) jobspecs.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return jobspecs.Condition{}
}

func (s *stage) status() jobspecs.Status {
	s.Helper()
	st, err := s.Status(s.Context(), web)
	if err != nil {
		s.Fatal(err)
	}
	return st
}

// member is one row of `ps`.
func (s *stage) member(ordinal int) jobspecs.Member {
	s.Helper()
	for _, m := range s.status().Members {
		if m.Ordinal == ordinal {
			return m
		}
	}
	s.Fatalf("web-%d is not listed", ordinal)
	return jobspecs.Member{}
}

// counters are those of the status in one line.
func (s *stage) counters() string {
	st := s.status()
	return fmt.Sprintf("replicas %d current %d updated %d ready %d available %d",
		st.Replicas, st.CurrentReplicas, st.UpdatedReplicas, st.ReadyReplicas, st.AvailableReplicas)
}

// every gives the line of counters of a set that is whole.
func every(n int) string {
	return fmt.Sprintf("replicas %d current %d updated %d ready %d available %d", n, n, n, n, n)
}

// host is the containers of members, without those kept for their logs.
func (s *stage) host() string {
	var out []string
	for _, c := range s.world.Containers() {
		if strings.HasSuffix(c.Name, "_"+jobspecs.PartPrevious) {
			continue
		}
		text := c.Name + " " + c.Image
		if !c.Running() {
			text += " " + c.State
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (s *stage) disks() string {
	var out []string
	for _, d := range s.world.Disks() {
		out = append(out, d.Name)
	}
	return strings.Join(out, " ")
}

// runs are the ids of the containers that run, by name.
func (s *stage) runs() map[string]string {
	out := map[string]string{}
	for _, c := range s.world.Containers() {
		if c.Running() {
			out[c.Name] = c.ID
		}
	}
	return out
}

// untouched checks that members run in the containers they ran in.
func (s *stage) untouched(before map[string]string, members ...string) {
	s.Helper()
	now := s.runs()
	for _, m := range members {
		if before[m] == "" || now[m] != before[m] {
			s.Errorf("%s was touched", m)
		}
	}
}

// deeds are the writes of some verbs that were done since the last Forget.
func (s *stage) deeds(verbs ...string) string {
	var out []string
	for _, c := range s.world.Writes() {
		if c.Err == "" && slices.Contains(verbs, c.Verb) {
			out = append(out, c.String())
		}
	}
	return strings.Join(out, ", ")
}

// told gives the events of a reason: "web-2: create volume …", one a line.
func (s *stage) told(reason string) string {
	var out []string
	err := s.Events(s.Context(), api.EventQuery{Set: "web"}, func(e jobspecs.Event) error {
		if e.Reason == reason {
			out = append(out, e.Member+": "+e.Message)
		}
		return nil
	})
	if err != nil {
		s.Error(err)
	}
	return strings.Join(out, "\n")
}

func (s *stage) want(what, got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("%s = %q, want %q", what, got, want)
	}
}

// has checks for a text inside of another.
func (s *stage) has(what, got, part string) {
	s.Helper()
	if !strings.Contains(got, part) {
		s.Errorf("%s = %q, want %q in it", what, got, part)
	}
}

// asked is the way of every verb that is to be taken.
func (s *stage) asked(r client.Result, err error) client.Result {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
	return r
}

var sure = client.Write{Yes: true}

// apply stores the set that the options describe; see hcl.
func (s *stage) apply(opts string) client.Result {
	s.Helper()
	return s.applyText(hcl(opts))
}

// applyText is apply of a file.
func (s *stage) applyText(text string) client.Result {
	s.Helper()
	r, err := s.Apply(s.Context(), request(text, sure))
	if err != nil {
		s.Fatal(err)
	}
	return r.Results[0]
}

// refused gives the sentence with which an apply is refused.
func (s *stage) refused(opts string) string {
	s.Helper()
	_, err := s.Apply(s.Context(), request(hcl(opts), client.Write{}))
	return s.problem(err)
}

// problem is the title of a Problem, and its first finding or data.
func (s *stage) problem(err error) string {
	s.Helper()
	var p *client.Problem
	if !errors.As(err, &p) {
		s.Errorf("error = %v, want a Problem", err)
		return ""
	}
	text := p.Title
	if len(p.Diagnostics) > 0 {
		text += ": " + p.Diagnostics[0].Summary
	}
	if len(p.Data) > 0 {
		text += ": " + p.Data[0]
	}
	return text
}

func request(text string, w client.Write) client.ApplyRequest {
	return client.ApplyRequest{Write: w, Scopes: []client.Scope{{Sources: []jobspecs.Source{{Name: "web.hcl", Text: []byte(text)}}}}}
}

func (s *stage) scale(n int) {
	s.Helper()
	s.asked(s.Scale(s.Context(), web, client.ScaleRequest{Replicas: n, Write: sure}))
}

func (s *stage) image(ref string) {
	s.Helper()
	s.asked(s.SetImage(s.Context(), web, client.ImageRequest{Images: map[string]string{"": ref}}))
}

func (s *stage) rollout(do string, to int) client.Result {
	s.Helper()
	return s.asked(s.Rollout(s.Context(), web, client.RolloutRequest{Do: do, To: to, Write: sure}))
}

func (s *stage) delete(r client.DeleteRequest) {
	s.Helper()
	r.Write = sure
	s.asked(s.Delete(s.Context(), web, r))
}

// deleted deletes the set and waits until nothing of it is stored.
func (s *stage) deleted(volumes string) {
	s.Helper()
	s.delete(client.DeleteRequest{Volumes: volumes})
	if !s.until(10*time.Minute, func() bool { _, err := s.Status(s.Context(), web); return err != nil }) {
		s.Fatalf("it is not deleted: %+v", s.status())
	}
}

// history is "1 app:1 web-0,web-1" for each revision.
func (s *stage) history() string {
	s.Helper()
	rows, err := s.History(s.Context(), web)
	if err != nil {
		s.Fatal(err)
	}
	var out []string
	for _, r := range rows {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s", r.Number, strings.Join(r.Images, ","), strings.Join(r.Members, ","))))
	}
	return strings.Join(out, "; ")
}

// standards are the options of a set that is described by none.
var standards = map[string]string{
	"image": "app:1", "replicas": "3", "start": "0", "manage": "ordered", "strategy": "rolling", "partition": "0", "max": "1",
	"minready": "0s", "claim": "data:retain:retain", "probe": "tcp", "history": "10", "grace": "5s", "env": "", "service": "web", "recovery": "0s",
	"label": "",
}

// hcl is a set "web" as its user writes it, of options like "image=app:2 replicas=5".
// A claim is NAME:ON_SCALE_DOWN:ON_DELETE, several are joined by commas.
func hcl(opts string) string {
	o := map[string]string{}
	for k, v := range standards {
		o[k] = v
	}
	for _, word := range strings.Fields(opts) {
		k, v, _ := strings.Cut(word, "=")
		if _, ok := o[k]; !ok {
			panic("no such option: " + k)
		}
		o[k] = v
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("statefulset \"web\" {")
	line("replicas = %s\nstart_ordinal = %s\npod_management = %q\nservice = %q", o["replicas"], o["start"], o["manage"], o["service"])
	line("revision_history_limit = %s\ntermination_grace = %q\nrecovery_wait = %q", o["history"], o["grace"], o["recovery"])
	line("update {\nstrategy = %q\npartition = %s\nmax_unavailable = %q\nmin_ready = %q\n}", o["strategy"], o["partition"], o["max"], o["minready"])
	if o["label"] != "" {
		line("labels = {\ntier = %q\n}", o["label"])
	}
	var mounts []string
	for _, c := range strings.Split(o["claim"], ",") {
		if p := strings.Split(c, ":"); len(p) == 3 {
			line("volume %q {\non_scale_down = %q\non_delete = %q\n}", p[0], p[1], p[2])
			mounts = append(mounts, p[0])
		}
	}
	line("container \"main\" {\nimage = %q\nport \"http\" {\ncontainer = 80\n}", o["image"])
	if o["env"] != "" {
		line("env = {\nX = %q\n}", o["env"])
	}
	for _, m := range mounts {
		line("mount %q {\npath = \"/%s\"\n}", m, m)
	}
	if o["probe"] == "tcp" {
		line("probe \"readiness\" {\ntcp {\nport = \"http\"\n}\nperiod = \"2s\"\n}")
	}
	line("}\n}")
	return b.String()
}
