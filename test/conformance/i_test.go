package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stsd/stsd/daemon/store"
	"github.com/stsd/stsd/jobspecs"
)

// taken is a file that is read without a finding.
func taken(id, what, text string) row {
	return is(id, what, "the file is read", "it is taken", takes(text))
}

// rejected is a file that is refused with one sentence at its line.
func rejected(id, what, text, want string) row {
	return is(id, what, "the file is read", "it is refused with its line", refuses(text, want))
}

const notLabel = " is no DNS label: want lower-case letters, digits and dashes, with a letter or digit at both ends"

// mounts is a set with a claim that its container mounts; lines are the claim's.
func mounts(lines string) string {
	return block("web", "volume \"data\" {\n"+lines+"\n}\n"+box("mount \"data\" {\npath = \"/data\"\n}"))
}

// edited makes a set and applies another file; nobody is restarted unless it says
// so, and rest is what is checked.
func edited(first, then string, restarts bool, check func(*stage)) func(*testing.T) {
	return story(func(s *stage) {
		s.apply(first)
		s.rest()
		before := s.runs()
		s.apply(then)
		s.rest()
		if !restarts {
			s.untouched(before, "web-0", "web-1", "web-2")
		}
		check(s)
	})
}

func nothing(*stage) {}

// unreadable lets the stored source be one that this version no longer takes.
func (s *stage) unreadable() {
	s.Helper()
	s.end()
	st, err := store.Open(s.dir, store.Options{NoSync: true})
	if err != nil {
		s.Fatal(err)
	}
	v, err := st.Look(web)
	if err != nil {
		s.Fatal(err)
	}
	scope := store.Scope{Sources: []jobspecs.Source{{Name: "web.hcl", Text: []byte(`statefulset "web" { former = true }`)}}}
	if err := st.Put(&store.Intent{Record: v.Record, Scope: &scope, Expect: v.Record.Generation}); err != nil {
		s.Fatal(err)
	}
	if err := st.Close(); err != nil {
		s.Fatal(err)
	}
	s.boot()
}

func validation() []row {
	rows := []row{
		taken("I1", "a name of letters", block("abc", box(""))),
		taken("I2", "a name of letters and digits", block("abc1", box(""))),
		none("I3", "every member has a network of its own, with its address and names; a member on the host's network would have neither"),
		taken("I4", `pod_management "parallel"`, set(`pod_management = "parallel"`)),
		taken("I5", `pod_management "ordered"`, set(`pod_management = "ordered"`)),
		taken("I6", "a rolling update with a partition", "statefulset \"web\" {\nreplicas = 3\nupdate {\nstrategy = \"rolling\"\npartition = 2\n}\n"+box("")+"\n}"),
		taken("I7", "a claim that is deleted with the set and retained on scale-down", mounts("on_delete = \"delete\"\non_scale_down = \"retain\"")),
		taken("I8", "max_unavailable in a parallel set", set("pod_management = \"parallel\"\nupdate {\nmax_unavailable = 2\n}")),
		taken("I9", "a positive start_ordinal", set("start_ordinal = 2")),
		differs("I10-I12", "a template that names a host name or subdomain", "the file is read", "it is refused: members are named by the set",
			"What would have no effect is an error, not ignored.", all(
				refuses(set(`hostname = "x"`), `the statefulset block has no attribute "hostname"`),
				refuses(set(`subdomain = "x"`), `the statefulset block has no attribute "subdomain"`))),
		taken("I13", "a mount of a claim", mounts("")),
		differs("I14-I15", "a claim and another volume of one name", "the file is read", "it is refused",
			"One of them would be replaced by the other in silence.", refuses(block("web", "volume \"a\" {\n}\nscratch \"a\" {\n}\n"+box("mount \"a\" {\npath = \"/a\"\n}")), `"a" is a volume already`)),
		taken("I16", "one claim", mounts("")),

		rejected("I17", "an empty name", block("", box("")), `""`+notLabel),
		rejected("I18", "a name with a dot", block("a.b", box("")), `"a.b"`+notLabel),
		rejected("I19", "a name of 64 characters", block(strings.Repeat("a", 64), box("")), `"`+strings.Repeat("a", 64)+`" has 64 characters; a DNS label has 63 at most`),
		differs("I20", "no namespace", "the file is read", "it is the default one", "There is no object without a namespace.", reads(set(""), func(s jobspecs.Spec) bool { return s.Set.Namespace == "default" && !s.Placed })),
		none("I21-I22", "there are no selectors: a member belongs to the set whose name it carries"),
		rejected("I23", "negative replicas", set("replicas = -1"), "-1 is not a whole number from 0 to 10000"),
		is("I24", "a label without a name, and one of stsd's own", "the file is read", "it is refused", all(
			refuses(set(`labels = { "" = "b" }`), `"" cannot be the name of a label`),
			refuses(set(`labels = { "stsd.set" = "b" }`), `label "stsd.set": names that begin with stsd. are stsd's own`))),
		none("I25", "there are no selectors"),
		none("I26", "objects of Docker have labels and no annotations"),
		rejected("I27-I29", "another restart policy", block("web", box(`restart_policy = "OnFailure"`)), `the container block has no attribute "restart_policy"`),
		rejected("I30", "an unknown strategy", updates(`strategy = "rooling"`), `"rooling" is none of "rolling", "on_delete"; did you mean "rolling"?`),
		rejected("I31", "an empty strategy", updates(`strategy = ""`), `"" is none of "rolling", "on_delete"`),
		differs("I32", "on_delete with a partition", "the file is read", "it is taken, and the partition waits for another strategy",
			"Changing the strategy to and fro keeps the rest of the block.", all(takes(updates("strategy = \"on_delete\"\npartition = 2")), plans(world(onDelete, partition(1), to("r2"), full(0, 2)), ""))),
		rejected("I33", "a negative partition", updates("partition = -1"), "-1 is not a whole number from 0"),
		rejected("I34", "an empty pod_management", set(`pod_management = ""`), `"" is none of "ordered", "parallel"`),
		rejected("I35", "an unknown pod_management", set(`pod_management = "sequential"`), `"sequential" is none of "ordered", "parallel"`),
		rejected("I36", "a deadline for a member's whole life", set("active_deadline_seconds = 5"), `the statefulset block has no attribute "active_deadline_seconds"`),
		rejected("I37", "an empty retention", mounts(`on_delete = ""`), `"" is none of "retain", "delete"`),
		rejected("I38", "an unknown retention", mounts(`on_scale_down = "keep"`), `"keep" is none of "retain", "delete"`),
		rejected("I39", "max_unavailable 0", updates("max_unavailable = 0"), `"0" is too little: at least 1 member may be unavailable, or nothing could be updated`),
		rejected("I40", "max_unavailable 0 %", updates(`max_unavailable = "0%"`), `"0%" is too little: at least 1 member may be unavailable, or nothing could be updated`),
		rejected("I41", "max_unavailable 101 %", updates(`max_unavailable = "101%"`), `"101%" is more than all`),
		rejected("I42", "a negative start_ordinal", set("start_ordinal = -1"), "-1 is not a whole number from 0"),
		rejected("I43", "a service that is no label", set(`service = "Not_A_Label"`), `"Not_A_Label"`+notLabel),
		rejected("I44", "a mount of nothing", block("web", box("mount \"data\" {\npath = \"/d\"\n}")), `there is no volume, scratch or bind "data" to mount`),
		is("I45", "a mount of test beside a claim test1", "the file is read", "it is refused, and told that test1 is not used", refuses(
			block("web", "volume \"test1\" {\n}\n"+box("mount \"test\" {\npath = \"/d\"\n}")), "volume \"test1\" is never mounted\nthere is no volume, scratch or bind \"test\" to mount")),
		rejected("I46", "two claims of one name", block("web", "volume \"data\" {\n}\nvolume \"data\" {\n}\n"+box("mount \"data\" {\npath = \"/data\"\n}")), `there are two blocks volume "data"`),
		none("I47", "a Docker volume has no access modes: it is one member's"),
		none("I48", "Docker volumes have no attribute classes"),
		taken("I49", "min_ready 0s", updates(`min_ready = "0s"`)),
		rejected("I50", "a negative min_ready", updates(`min_ready = "-1s"`), `"-1s" is negative`),
		taken("I51", "a positive min_ready", updates(`min_ready = "30s"`)),
		rejected("I52", "a negative min_ready beside another mistake", updates("min_ready = \"-1s\"\nmax_unavailable = 0"), "\"-1s\" is negative\n\"0\" is too little: at least 1 member may be unavailable, or nothing could be updated"),
		none("I53-I65", "status is what stsd has seen: nobody writes it, so there is none to check"),
	}
	rows = append(rows, changes()...)
	return append(rows,
		is("I96-I97", "a stored revision", "it is brought back", "its content is what it was; only its number has changed", story(func(s *stage) {
			s.apply("")
			s.rest()
			before, _ := s.History(s.Context(), web)
			s.apply("image=app:2")
			s.rest()
			s.apply("")
			s.rest()
			after, _ := s.History(s.Context(), web)
			old, now := before[0], after[len(after)-1]
			if old.Name != now.Name || string(old.Template) != string(now.Template) || now.Number != 3 {
				s.Errorf("revision %d %s %s became %d %s %s", old.Number, old.Name, old.Template, now.Number, now.Name, now.Template)
			}
		})),
		none("I98-I99", "revisions are made by stsd alone: nobody hands one in that could be wrong"),
		rejected("I100", `the strategy "recreate"`, updates(`strategy = "recreate"`), `"recreate" is none of "rolling", "on_delete"`),
		none("I101-I111", "stsd has no recreate strategy that could be switched on, to or away from; an update of all at once is max_unavailable = \"100%\""),
	)
}

func changes() []row {
	return []row{
		is("I66", "a set", "replicas change", "it is taken, and nobody who stays is restarted", edited("", "replicas=4", false, nothing)),
		is("I67-I68", "a set", "its container changes", "it is taken, and rolled out", edited("", "image=app:2", true, func(s *stage) { s.want("host", s.host(), containers(3, 0)) })),
		is("I69-I70", "a set", "container and retention change together", "it is taken, and both hold", edited("", "image=app:2 claim=data:delete:delete", true, func(s *stage) {
			s.want("host", s.host(), containers(3, 0))
			s.scale(0)
			s.rest()
			s.want("volumes", s.disks(), "")
		})),
		is("I71", "a set", "the strategy changes", "it is taken, and nobody is restarted", edited("", "strategy=on_delete", false, nothing)),
		is("I72-I73", "a set", "min_ready changes", "it is taken, and nobody is restarted", edited("", "minready=1m", false, nothing)),
		is("I74 I76 I77 I83", "a stored set that this version would not take", "a good file is applied", "it is taken: what was stored holds nobody back", story(func(s *stage) {
			s.apply("")
			s.rest()
			before := s.runs()
			s.unreadable()
			s.pass(time.Minute)
			s.untouched(before, "web-0", "web-1", "web-2")
			s.apply("image=app:2")
			s.rest()
			s.want("host", s.host(), containers(3, 0))
		})),
		is("I75", "a set", "start_ordinal changes", "it is taken once it is confirmed, as it loses sight of data", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.has("apply", s.refused("start=1"), "data: the first ordinal changes from 0 to 1")
			s.apply("start=1")
			s.rest()
			s.want("host", s.host(), "web-1 app:1, web-2 app:1, web-3 app:1")
		})),
		is("I78", "a set", "a claim is mounted too", "it is taken, and rolled out with new volumes", edited("claim=", "claim=data:retain:retain", true, func(s *stage) {
			s.want("volumes", s.disks(), "data-web-0 data-web-1 data-web-2")
		})),
		none("I79-I82", "a template has no host name and no subdomain (I10)"),
		is("I84", "a set with ten revisions kept", "revision_history_limit becomes 1", "it is taken, and the oldest go", story(func(s *stage) {
			for n := range 4 {
				s.apply("replicas=1 env=" + fmt.Sprint(n))
				s.rest()
			}
			s.apply("replicas=1 env=3 history=1")
			s.rest()
			s.want("history", s.history(), "3 app:1; 4 app:1 web-0")
		})),
		differs("I85-I86", "a set", "a file with another name or namespace is applied", "that is another set; the first one is not touched",
			"A file is not tied to an object: it says what shall be there.", story(func(s *stage) {
				s.apply("replicas=1")
				s.rest()
				before := s.runs()
				for _, text := range []string{strings.Replace(hcl("replicas=1"), `"web"`, `"db"`, 1), strings.Replace(hcl("replicas=1"), "replicas", "namespace = \"prod\"\nreplicas", 1)} {
					s.applyText(text)
				}
				s.pass(time.Minute)
				s.untouched(before, "web-0")
				s.want("host", s.host(), "db-0 app:1, prod.web-0 app:1, web-0 app:1")
			})),
		none("I87", "there are no selectors"),
		differs("I88-I89", "a set", "pod_management changes", "it is taken in both directions, and nobody is restarted",
			"How members are made is no property of those that run.", all(
				edited("manage=ordered", "manage=parallel", false, nothing), edited("manage=parallel", "manage=ordered", false, nothing))),
		is("I90", "a set", "replicas become negative", "it is refused, and nothing is stored", story(func(s *stage) {
			s.apply("")
			s.rest()
			s.has("apply", s.refused("replicas=-1"), "-1 is not a whole number from 0 to 10000")
			s.want("counters", s.counters(), every(3))
		})),
		differs("I91-I92", "a set with volumes", "size or driver of the claim change", "it is taken, and nobody is restarted; new members have new volumes so",
			"Claims are no dead end; an existing volume keeps its data as it is.", story(func(s *stage) {
				s.apply("")
				s.rest()
				before := s.runs()
				s.applyText(strings.Replace(hcl("replicas=4"), "volume \"data\" {", "volume \"data\" {\nsize = \"2GiB\"\ndriver = \"other\"", 1))
				s.rest()
				s.untouched(before, "web-0", "web-1", "web-2")
				s.want("volumes", s.disks(), "data-web-0 data-web-1 data-web-2 data-web-3")
			})),
		differs("I93", "a set with one claim", "the file has a second one", "it is taken, and rolled out member by member",
			"A claim is a part of the template: it can be added, and undone.", story(func(s *stage) {
				s.apply("")
				s.rest()
				s.world.Forget()
				s.apply("claim=data:retain:retain,log:retain:retain")
				s.rest()
				s.want("deeds", s.deeds("stop", "volume.create"), "stop web-2, volume.create log-web-2, stop web-1, volume.create log-web-1, stop web-0, volume.create log-web-0")
			})),
		differs("I94", "a set", "its service changes", "it is taken once it is confirmed, as members lose their names, and rolled out",
			"The plan says what it costs instead of refusing.", story(func(s *stage) {
				s.apply("")
				s.rest()
				s.has("apply", s.refused("service=other"), "data: the service changes from web to other")
				s.apply("service=other")
				s.rest()
				s.want("name", s.member(0).FQDN, "web-0.other.default.svc.cluster.local")
			})),
		is("I95", "a good set", "a bad file is applied", "it is refused, and the set goes on as it was", story(func(s *stage) {
			s.apply("")
			s.rest()
			before := s.runs()
			s.has("apply", s.refused("image="), "image")
			s.pass(time.Minute)
			s.untouched(before, "web-0", "web-1", "web-2")
		})),
	}
}
