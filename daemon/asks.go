package daemon

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/volumes"
)

// ChangeMembers restarts, replaces, stops or starts members. What is asked is stored
// before anything is done, and over when the member's next pod is made.
func (d *Daemon) ChangeMembers(ctx context.Context, key jobspecs.Key, r client.MembersRequest) (client.Result, error) {
	d.write.Lock()
	defer d.write.Unlock()
	v, err := d.existing(ctx, key, r.Write)
	if err != nil {
		return client.Result{}, err
	}
	if v.Record.Lost {
		return client.Result{}, conflict(key, "its spec was lost; apply it again first")
	}
	ordinals, err := chosen(v, r.Ordinals)
	if err != nil {
		return client.Result{}, err
	}
	c := edited(v)
	var message string
	switch whole := r.Ordinals == nil; r.Do {
	case "restart", "replace":
		message, err = c.ask(r.Do, ordinals, whole)
	case "stop", "start":
		message = c.stop(ordinals, r.Do == "stop", whole)
	default:
		err = invalid(fmt.Sprintf("%q is nothing to do with members: restart, replace, stop or start", r.Do))
	}
	if err != nil {
		return client.Result{}, err
	}
	return d.one(ctx, c, r.Write, message)
}

// edited is a change of a set that leaves its spec as it is.
func edited(v *store.View) *change {
	key := v.Record.Key()
	c := &change{key: key, before: v, name: v.Record.Update, result: client.Result{Namespace: key.Namespace, Set: key.Name}}
	c.intent = store.Intent{Record: v.Record, Expect: v.Record.Generation}
	return c
}

// chosen are the ordinals that a request names, each once; nil: all.
func chosen(v *store.View, named []int) ([]int, error) {
	all := v.Record.Set.Ordinals(v.Record.Replicas)
	if named == nil {
		return all, nil
	}
	for _, o := range named {
		if !slices.Contains(all, o) {
			return nil, &client.Problem{
				Type: client.ProblemNotFound, Status: http.StatusNotFound, Set: v.Record.Set.Name,
				Title:  fmt.Sprintf("%s has no member %s", v.Record.Set.Name, jobspecs.MemberName(v.Record.Set.Name, o)),
				Detail: "stsd ps " + typed(v.Record.Set.Namespace, v.Record.Set.Name),
			}
		}
	}
	out := slices.Clone(named)
	slices.Sort(out)
	return slices.Compact(out), nil
}

// ask wants members restarted: all of a set in their turn, some of them now.
func (c *change) ask(do string, ordinals []int, whole bool) (message string, err error) {
	kind := planner.AskNow
	if whole {
		kind = planner.AskTurn
	}
	c.intent.Asks = map[int]planner.Ask{}
	for _, o := range ordinals {
		if !c.before.Members[o].Stopped {
			c.intent.Asks[o] = kind
			continue
		}
		if !whole {
			name := jobspecs.MemberName(c.key.Name, o)
			return "", conflict(c.key, fmt.Sprintf("%s is stopped; stsd start %s brings it back", name, typed(c.key.Namespace, name)))
		}
	}
	c.same = len(c.intent.Asks) == 0
	switch {
	case c.same:
		return c.key.Name + " has no member that runs", nil
	case whole:
		return c.key.Name + " restarts, member by member", nil
	}
	return c.list(ordinals) + verb(ordinals, map[string]string{"restart": " restarts", "replace": " is replaced"}[do], map[string]string{"restart": " restart", "replace": " are replaced"}[do]), nil
}

// stop keeps members down until they are started, or starts them.
func (c *change) stop(ordinals []int, down, whole bool) (message string) {
	c.intent.Stopped = map[int]bool{}
	for _, o := range ordinals {
		if c.before.Members[o].Stopped != down {
			c.intent.Stopped[o] = down
		}
	}
	c.same = len(c.intent.Stopped) == 0
	who := c.key.Name
	if !whole {
		who = c.list(ordinals)
	}
	one := ordinals
	if whole {
		one = nil
	}
	switch {
	case c.same && down:
		return who + verb(one, " is stopped already", " are stopped already")
	case c.same:
		return who + verb(one, " is not stopped", " are not stopped")
	case down:
		return who + verb(one, " stops", " stop") + ", until stsd start"
	}
	return who + verb(one, " starts", " start")
}

func verb(ordinals []int, one, several string) string {
	if len(ordinals) > 1 {
		return several
	}
	return one
}

func (c *change) list(ordinals []int) string {
	var names []string
	for _, o := range ordinals {
		names = append(names, jobspecs.MemberName(c.key.Name, o))
	}
	return strings.Join(names, ", ")
}

// force lets the change go past guard and vetoes.
func (c *change) force(w client.Write) {
	c.intent.Record.Forced = w.Force
	if w.Force && c.before != nil && !c.before.Record.Forced {
		c.same = false
	}
}

// spare refuses a change that stops more members than the guard allows. While the
// engine does not answer nothing is known; the guard holds then when it does.
func (d *Daemon) spare(ctx context.Context, c *change, w client.Write) error {
	r := &c.intent.Record
	if w.Force || r.Set.Guard == nil || r.Deleting != nil || c.before == nil || c.same {
		return nil
	}
	s, err := d.unrendered(ctx, c)
	if err != nil {
		return nil
	}
	refused := s.world.Guards(c.stops(&s.world))
	if refused == "" {
		return nil
	}
	return &client.Problem{
		Type: client.ProblemGuard, Title: fmt.Sprintf("set %s: refused by its guard", c.key.Name), Status: http.StatusConflict, Set: c.key.Name,
		Detail: refused + "; --force overrides it",
	}
}

// stops is how many available members are stopped at once when the change is made: those
// that go, or the first of those that are restarted, and those that an earlier change
// has let go and that run still. Zero: the change stops nobody.
func (c *change) stops(w *planner.World) int {
	old := &c.before.Record
	has, had := w.Set.Ordinals(w.Replicas), old.Set.Ordinals(old.Replicas)
	gone, asked, already := 0, 0, 0
	for i := range w.Pods {
		p := &w.Pods[i]
		if !w.IsAvailable(p) {
			continue
		}
		_, stays := slices.BinarySearch(has, p.Ordinal)
		_, was := slices.BinarySearch(had, p.Ordinal)
		stop, said := c.intent.Stopped[p.Ordinal]
		switch {
		case !stays && !was, c.before.Members[p.Ordinal].Stopped && (stop || !said):
			already++
		case !stays || c.intent.Stopped[p.Ordinal]:
			gone++
		case c.intent.Asks[p.Ordinal] != planner.AskNone || c.restarts:
			asked = 1
		}
	}
	if n := max(gone, asked); n > 0 {
		return n + already
	}
	return 0
}

// FreshVolume replaces a member: it comes back with empty volumes. What the others
// hold, and volumes that never held data, is not touched.
func (d *Daemon) FreshVolume(ctx context.Context, key jobspecs.Key, r client.FreshVolumeRequest) (client.Result, error) {
	d.write.Lock()
	defer d.write.Unlock()
	v, err := d.existing(ctx, key, r.Write)
	if err != nil {
		return client.Result{}, err
	}
	if v.Record.Lost {
		return client.Result{}, conflict(key, "its spec was lost; apply it again first")
	}
	if _, err := chosen(v, []int{r.Ordinal}); err != nil {
		return client.Result{}, err
	}
	if err := d.inTheWay(ctx, v, r.Ordinal); err != nil {
		return client.Result{}, err
	}
	member := jobspecs.MemberName(key.Name, r.Ordinal)
	if v.Members[r.Ordinal].Stopped {
		return client.Result{}, conflict(key, fmt.Sprintf("%s is stopped; stsd start %s brings it back", member, typed(key.Namespace, member)))
	}
	c := edited(v)
	c.intent.Asks = map[int]planner.Ask{r.Ordinal: planner.AskFresh}
	for _, x := range given(v, r.Ordinal) {
		c.data = append(c.data, fmt.Sprintf("data: %s starts with an empty %s; what that volume held is given up", member, x.Name))
	}
	if len(c.data) == 0 {
		return client.Result{}, conflict(key, member+" has no volume that held data; stsd replace "+typed(key.Namespace, member)+" gives it a new container")
	}
	return d.one(ctx, c, r.Write, fmt.Sprintf("%s starts with empty volumes", member))
}

// given are the volumes of a member that held data, by name.
func given(v *store.View, ordinal int) []volumes.Record {
	var out []volumes.Record
	for _, r := range v.Volumes {
		if r.Ordinal == ordinal && r.Used && !r.Deleting {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b volumes.Record) int { return strings.Compare(a.Name, b.Name) })
	return out
}
