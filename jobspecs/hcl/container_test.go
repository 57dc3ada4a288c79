package hcl

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stsd/stsd/jobspecs"
)

// mountingSet is a set with a volume, a scratch folder and a bind, whose container
// has the lines given.
func mountingSet(lines string) string {
	all := "mount \"data\" {\npath = \"/d\"\n}\nmount \"tmp\" {\npath = \"/t\"\n}\nmount \"certs\" {\npath = \"/c\"\n}"
	return pod("volume \"data\" {\n}\nscratch \"tmp\" {\n}\nbind \"certs\" {\nsource = \"/certs\"\n}\n" + blockOf("sidecar", "all", all) + blockOf("container", "web", lines))
}

func inMount(name, lines string) string {
	return mountingSet("mount \"" + name + "\" {\n" + lines + "\n}")
}

func blockOf(kind, name, lines string) string {
	return kind + " \"" + name + "\" {\nimage = \"x\"\n" + lines + "\n}\n"
}

func inProbe(kind, lines string) string { return web("probe \"" + kind + "\" {\n" + lines + "\n}") }

const execTrue = "exec {\ncommand = [\"true\"]\n}\n"

func TestContainersAreRefused(t *testing.T) {
	for _, c := range []struct{ rule, text, want string }{
		{"no main among inits and sidecars", pod(blockOf("init", "a", "") + blockOf("sidecar", "b", "")), `statefulset "web" needs a container`},
		{"two containers of one name", pod(blockOf("container", "a", "") + blockOf("container", "a", "")), `there are two blocks container "a"`},
		{"a sidecar named like a container", pod(blockOf("sidecar", "a", "") + blockOf("container", "a", "")), `there are two containers named "a"`},
		{"an init named like a sidecar", pod(blockOf("sidecar", "a", "") + blockOf("init", "a", "") + blockOf("container", "b", "")), `there are two containers named "a"`},
		{"the name of what is kept", pod(blockOf("container", "previous", "")), `a container cannot be named "previous": stsd names a part of each member so`},
		{"the name of the sandbox", pod(blockOf("init", "sandbox", "") + blockOf("container", "a", "")), `a container cannot be named "sandbox": stsd names a part of each member so`},
		{"a probe of an init", pod(blockOf("init", "a", "probe \"readiness\" {\n"+execTrue+"}") + blockOf("container", "b", "")), "the init block cannot have probe"},
		{"a hook of an init", pod(blockOf("init", "a", "lifecycle {\n}") + blockOf("container", "b", "")), "the init block cannot have lifecycle"},
		{"a port of an init", pod(blockOf("init", "a", "port \"x\" {\ncontainer = 1\n}") + blockOf("container", "b", "")), "the init block cannot have port"},
		{"one port in two containers", pod(blockOf("container", "a", "port \"x\" {\ncontainer = 80\n}") + blockOf("container", "b", "port \"y\" {\ncontainer = 80\n}")), `port 80/tcp is used by container "a" too`},
		{"one port in a sidecar and a container, for some members", pod(blockOf("sidecar", "a", "port \"x\" {\ncontainer = 80 + self.ordinal\n}") + blockOf("container", "b", "port \"y\" {\ncontainer = 82\n}")), `port 82/tcp is used by container "a" too`},
		{"one port name in two containers", pod(blockOf("container", "a", "port \"x\" {\ncontainer = 80\n}") + blockOf("container", "b", "port \"x\" {\ncontainer = 81\n}")), `port "x" is declared in container "a" too`},
		{"a probe of another container's port", pod(blockOf("container", "a", "port \"x\" {\ncontainer = 80\n}") + blockOf("sidecar", "b", "probe \"liveness\" {\ntcp {\nport = \"x\"\n}\n}")), `there is no port "x" in this container`},

		{"an image in capitals", strings.Replace(web(""), `"x"`, `"Redis:7"`, 1), `"Redis:7" is no image: its name must be in lower case`},
		{"an image with a blank", strings.Replace(web(""), `"x"`, `"redis 7"`, 1), `"redis 7" is no image: it has a blank or a quote in it`},
		{"an image without a name", strings.Replace(web(""), `"x"`, `":7"`, 1), `":7" is no image: want a name such as redis:7`},
		{"no image", strings.Replace(web(""), `"x"`, `""`, 1), `"" is no image: want a name such as redis:7`},
		{"a zero byte in env", web(`env = { A = "a\u0000" }`), "A: a zero byte cannot be part of it"},
		{"an argument that no program takes", web("args = [join(\"\", [for x in range(1000) : \"" + strings.Repeat("x", 132) + "\"])]"), "element 0: it has 132000 bytes; a program is given 131071 at most"},
		{"a zero byte in args", web(`args = ["a\u0000"]`), "element 0: a zero byte cannot be part of it"},

		{"a scratch folder named like a volume", pod("volume \"a\" {\n}\nscratch \"a\" {\n}\n" + blockOf("container", "c", "mount \"a\" {\npath = \"/a\"\n}")), `"a" is a volume already`},
		{"a bind named like a scratch folder", pod("scratch \"a\" {\n}\nbind \"a\" {\nsource = \"/\"\n}\n" + blockOf("container", "c", "mount \"a\" {\npath = \"/a\"\n}")), `"a" is a scratch already`},
		{"a scratch folder of another medium", pod("scratch \"a\" {\nmedium = \"tape\"\n}\n" + blockOf("container", "c", "mount \"a\" {\npath = \"/a\"\n}")), `"tape" is none of "disk", "memory"`},
		{"a bind without a source", pod("bind \"a\" {\n}\n" + blockOf("container", "c", "mount \"a\" {\npath = \"/a\"\n}")), "bind needs source"},
		{"a bind of a relative path", pod("bind \"a\" {\nsource = \"certs\"\n}\n" + blockOf("container", "c", "mount \"a\" {\npath = \"/a\"\n}")), `"certs" is no absolute path: want a slash at its beginning`},
		{"a mount of what is not there", inMount("tpm", "path = \"/a\""), `there is no volume, scratch or bind "tpm" to mount`},
		{"a mount at the root", inMount("tmp", "path = \"/\""), "nothing can be mounted at /: the image is there"},
		{"a mount at /proc", inMount("tmp", "path = \"/proc\""), "nothing can be mounted at /proc: the kernel's own files are in /proc"},
		{"a mount below /sys", inMount("tmp", "path = \"/sys/fs\""), "nothing can be mounted at /sys/fs: the kernel's own files are in /sys"},
		{"a mount at /dev", inMount("tmp", "path = \"/dev/\""), "nothing can be mounted at /dev: the kernel's own files are there"},
		{"a mount at the hosts file", inMount("certs", "path = \"/etc/hosts\""), "nothing can be mounted at /etc/hosts: stsd writes that file"},
		{"a sub_path that is absolute", inMount("data", "path = \"/a\"\nsub_path = \"/b\""), `"/b" is absolute: want a path inside of what is mounted, as in "conf/d"`},
		{"a sub_path that leads out", inMount("data", "path = \"/a\"\nsub_path = \"b/../../c\""), `"b/../../c" leads out of what is mounted`},
		{"a sub_path that leads out for a member", inMount("data", "path = \"/a\"\nsub_path = self.ordinal == 2 ? \"..\" : \"b\""), `".." leads out of what is mounted`},
		{"a sub_path of a bind", inMount("certs", "path = \"/a\"\nsub_path = \"b\""), "a bind has no sub_path"},
		{"a mount over a mount", mountingSet("mount \"data\" {\npath = \"/a\"\n}\nmount \"tmp\" {\npath = \"/a/b\"\n}"), `mount paths overlap: /a/b of "tmp" and /a of "data"`},
		{"a file where something is mounted", mountingSet("mount \"certs\" {\npath = \"/a\"\n}\nfile \"/a\" {\ncontent = \"\"\n}"), `/a cannot be a file: "certs" is mounted there`},
		{"a file above a mount", mountingSet("mount \"certs\" {\npath = \"/a/b\"\n}\nfile \"/a\" {\ncontent = \"\"\n}"), `/a cannot be a file: "certs" is mounted below it`},
		{"the hosts file", web("file \"/etc/hosts\" {\ncontent = \"\"\n}"), "/etc/hosts is written by stsd; extra_hosts adds lines to /etc/hosts"},
		{"the resolver's file by another spelling", web("file \"/etc//resolv.conf\" {\ncontent = \"\"\n}"), "/etc/resolv.conf is written by stsd; extra_hosts adds lines to /etc/hosts"},
		{"a file of the kernel", web("file \"/proc/sys/x\" {\ncontent = \"\"\n}"), "/proc/sys/x cannot be a file: the kernel's own are in /proc"},

		{"a hurried period", inProbe("liveness", execTrue+"period = \"99ms\""), `"99ms" is too short: want 100ms at least`},
		{"a hurried time-out", inProbe("liveness", execTrue+"timeout = \"1ms\""), `"1ms" is too short: want 100ms at least`},
		{"a probe of an empty command", inProbe("liveness", "exec {\ncommand = []\n}"), "the list is empty"},
		{"startup by two successes", inProbe("startup", execTrue+"success_threshold = 2"), "success_threshold of a startup probe is always 1"},
		{"a role by http", inProbe("role", "http {\nport = 80\n}"), "a role probe takes exec only"},
		{"a role by three failures", inProbe("role", execTrue+"failure_threshold = 3"), "the thresholds of a role probe are fixed"},
		{"a role by its log", inProbe("role", "log {\npattern = \"x\"\n}"), "a role probe takes exec only"},
		{"liveness by its log", inProbe("liveness", "log {\npattern = \"x\"\n}"), "a liveness probe cannot look at the log"},
		{"a broken pattern", inProbe("startup", "log {\npattern = \"(\"\n}"), "\"(\" is no regular expression (RE2): missing closing ): `(`"},
		{"a grpc probe without a port", inProbe("liveness", "grpc {\n}"), "grpc needs port"},
		{"a grpc probe of a port that is not there", inProbe("liveness", "grpc {\nport = \"x\"\n}"), `there is no port "x" in this container`},
		{"a header of two lines", inProbe("liveness", "http {\nport = 80\nheaders = { A = \"a\\nb\" }\n}"), "A: a header's value is one line"},
		{"a header with a blank in its name", inProbe("liveness", "http {\nport = 80\nheaders = { \"A b\" = \"a\" }\n}"), `"A b" is no name of a header`},

		{"a hook that does nothing", web("lifecycle {\npre_stop {\n}\n}"), "pre_stop needs exactly one of exec, http, sleep"},
		{"a hook that does two things", web("lifecycle {\npost_start {\n" + execTrue + "sleep {\nduration = \"1s\"\n}\n}\n}"), "post_start needs exactly one of exec, http, sleep"},
		{"a sleep of nothing", web("lifecycle {\npre_stop {\nsleep {\nduration = \"0s\"\n}\n}\n}"), `"0s" is too short: want more than 0s`},
		{"a hook at a port that is not there", web("lifecycle {\npre_stop {\nhttp {\nport = \"x\"\n}\n}\n}"), `there is no port "x" in this container`},

		{"an unknown ulimit", web("ulimits = { nofiles = 1 }"), `"nofiles" is no ulimit; did you mean "nofile"?`},
		{"a soft limit above the hard one", web("ulimits = { nofile = \"2:1\" }"), `nofile: "2:1": the soft limit is above the hard one`},
		{"no limit below a hard one", web("ulimits = { nofile = \"unlimited:5\" }"), `nofile: "unlimited:5": the soft limit is above the hard one`},
		{"a ulimit of words", web("ulimits = { nofile = \"many\" }"), `nofile: "many" is no ulimit: want a number, "SOFT:HARD" or "unlimited"`},
		{"credentials without a password", web("registry_auth {\nusername = \"ci\"\n}"), "registry_auth needs password"},
		{"an empty user name", web("registry_auth {\nusername = \"\"\npassword = \"x\"\n}"), "it is empty\npassword is written in the clear"},
		{"a negative group", web("security {\nfs_group = -1\n}"), "-1 is not a whole number from 0"},
		{"an unknown capability", web("security {\ncap_add = [\"NET_ADMN\"]\n}"), `element 0: "NET_ADMN" is no capability; did you mean "NET_ADMIN"?`},
		{"root where it is refused", web("user = \"0:0\"\nsecurity {\nrun_as_non_root = true\n}"), `user "0:0" is root`},
		{"root by name where it is refused", web("user = \"root\"\nsecurity {\nrun_as_non_root = true\n}"), `user "root" is root`},
		{"a reservation above the limit", web("resources {\nmemory = \"64MiB\"\nmemory_reservation = \"65MiB\"\n}"), "memory_reservation 65MiB is more than memory 64MiB"},
		{"no processes", web("resources {\npids = 0\n}"), "0 is not a whole number from 1 to 4194304"},
		{"no shared memory", web("resources {\nshm_size = 0\n}"), `"0" is too little: want more than 0`},
		{"GPUs of words", web("resources {\ngpus = \"both\"\n}"), `"both" names no GPUs: want "all", a number, or "device=0,1"`},
		{"GPUs by an unknown key", web("resources {\ngpus = \"device=0,cuont=1\"\n}"), `"device=0,cuont=1" names no GPUs: want "all", a number, or "device=0,1"`},
		{"shared processes of some members", pod("share_processes = self.ordinal == 0\n" + blockOf("container", "a", "")), "self has no value here"},
	} {
		if got := found(c.text); got != c.want {
			t.Errorf("%s: found %q, want %q", c.rule, got, c.want)
		}
	}
}

func TestWhatIsWrongIsSaidAtItsPlace(t *testing.T) {
	for _, c := range []struct {
		rule, text string
		line       int
	}{
		{"a port of the second container", pod(blockOf("sidecar", "a", "port \"x\" {\ncontainer = 80\n}") + blockOf("container", "b", "port \"y\" {\ncontainer = 80\n}")), 12},
		{"a mount of an init", pod("volume \"d\" {\n}\n" + blockOf("init", "a", "mount \"d\" {\npath = \"/a\"\n}\nmount \"d\" {\npath = \"/a/b\"\n}") + blockOf("container", "b", "")), 10},
		{"a host port of a sidecar", pod(blockOf("sidecar", "a", "port \"x\" {\ncontainer = 80\nhost = 80\n}") + blockOf("container", "b", "")), 7},
		{"a hook's port", web("lifecycle {\npost_start {\nhttp {\nport = \"x\"\n}\n}\n}"), 8},
		{"a probe's port", web("probe \"liveness\" {\ngrpc {\nport = \"x\"\n}\n}"), 7},
	} {
		if _, ds := parse(c.text); len(ds) != 1 || ds[0].Line != c.line {
			t.Errorf("%s: found %+v, want line %d", c.rule, ds, c.line)
		}
	}
}

func TestContainersAreWarnedOf(t *testing.T) {
	for _, c := range []struct{ rule, text, want string }{
		{"a pause that outlasts the grace", pod("termination_grace = \"5s\"\n" + blockOf("container", "a", "lifecycle {\npre_stop {\nsleep {\nduration = \"6s\"\n}\n}\n}")), "a sleep of 6s is longer than termination_grace, 5s"},
		{"capabilities on top of all", web("security {\nprivileged = true\ncap_add = [\"SYS_ADMIN\"]\n}"), "privileged gives every capability; cap_add adds nothing"},
		{"scratch that nobody sees", pod("scratch \"a\" {\n}\n" + blockOf("container", "c", "")), `scratch "a" is never mounted`},
		{"a bind that nobody sees", pod("bind \"a\" {\nsource = \"/\"\n}\n" + blockOf("container", "c", "")), `bind "a" is never mounted`},
	} {
		f, _ := parse(c.text)
		if got := found(c.text); got != c.want || f == nil {
			t.Errorf("%s: found %q, file %v; want %q", c.rule, got, f, c.want)
		}
		if f != nil && Check(&f.Specs[0].Set, f.Specs[0].Template, nil) != nil {
			t.Errorf("%s: it keeps a set from being scaled", c.rule)
		}
	}
}

func TestContainersMayBeWrittenSo(t *testing.T) {
	for rule, text := range map[string]string{
		"a file inside a volume":                 mountingSet("mount \"data\" {\npath = \"/a\"\n}\nfile \"/a/b\" {\ncontent = \"\"\n}"),
		"a volume in an init alone":              pod("volume \"a\" {\n}\n" + blockOf("init", "i", "mount \"a\" {\npath = \"/a\"\n}") + blockOf("container", "c", "")),
		"one path in two containers":             pod("volume \"a\" {\n}\n" + blockOf("sidecar", "s", "mount \"a\" {\npath = \"/a\"\n}") + blockOf("container", "c", "mount \"a\" {\npath = \"/a\"\n}")),
		"tcp and udp on one port":                pod(blockOf("container", "a", "port \"x\" {\ncontainer = 53\n}") + blockOf("container", "b", "port \"y\" {\ncontainer = 53\nprotocol = \"udp\"\n}")),
		"one port number by two names":           web("port \"x\" {\ncontainer = 53\n}\nport \"y\" {\ncontainer = 53\n}"),
		"shared memory":                          inMount("tmp", "path = \"/dev/shm\"") + "\n" + strings.Replace(blockOf("statefulset", "b", blockOf("container", "c", "")), "image = \"x\"\n", "", 1),
		"an image by digest":                     strings.Replace(web(""), `"x"`, `"x@sha256:`+strings.Repeat("a", 64)+`"`, 1),
		"an image by its id":                     strings.Replace(web(""), `"x"`, `"sha256:`+strings.Repeat("a", 64)+`"`, 1),
		"an image of a registry with a port":     strings.Replace(web(""), `"x"`, `"localhost:5000/a/b:1"`, 1),
		"a user who is not root":                 web("user = \"999\"\nsecurity {\nrun_as_non_root = true\n}"),
		"a role that is asked often":             inProbe("role", execTrue+"period = \"100ms\"\ntimeout = \"1s\"\ninitial_delay = \"0s\""),
		"an init that is restarted with a delay": pod(blockOf("init", "a", "restart {\ninitial = \"5s\"\n}") + blockOf("container", "b", "")),
	} {
		if f, ds := parse(text); f == nil {
			t.Errorf("%s: found %s", rule, reportOf(ds))
		}
	}
}

func TestEqualFieldsOfContainersMakeNoRevision(t *testing.T) {
	for _, c := range []struct{ rule, a, b string }{
		{"ulimits", "ulimits = { nofile = 5, core = -1 }", "ulimits = { core = \"unlimited\", nofile = \"5:5\" }"},
		{"capabilities", "security {\ncap_add = [\"NET_ADMIN\", \"CHOWN\"]\n}", "security {\ncap_add = [\"CAP_CHOWN\", \"net_admin\", \"CHOWN\"]\n}"},
		{"a count of GPUs", "resources {\ngpus = 2\n}", "resources {\ngpus = \"count=2\"\n}"},
		{"all GPUs", "resources {\ngpus = \"all\"\n}", "resources {\ngpus = -1\n}"},
		{"GPUs by number", "resources {\ngpus = \"device=0,1\"\n}", "resources {\ngpus = \"\\\"device=0,1\\\"\"\n}"},
		{"empty blocks", "", "security {\n}\nlifecycle {\n}"},
	} {
		if a, b := template(t, web(c.a)), template(t, web(c.b)); !a.Equal(b) {
			t.Errorf("%s:\n%s\n%s", c.rule, a, b)
		}
	}
	sub := func(path string) jobspecs.Template {
		return template(t, strings.Replace(inMount("data", "path = \"/a\"\nsub_path = \"P\""), "P", path, 1))
	}
	if a, b := sub("b/c"), sub("./b//c/"); !a.Equal(b) {
		t.Errorf("a sub_path:\n%s\n%s", a, b)
	}
}

const (
	initA    = "init \"a\" {\nimage = \"x\"\n}\n"
	sidecarB = "sidecar \"b\" {\nimage = \"x\"\n}\n"
	mainC    = "container \"c\" {\nimage = \"x\"\n}\n"
	mainD    = "container \"d\" {\nimage = \"x\"\n}\n"
)

func TestContainersBeginAsWritten(t *testing.T) {
	for _, c := range []struct{ rule, text, want string }{
		{"one", mainC, "container c"},
		{"mains as written", mainD + mainC, "container d, container c"},
		{"inits and sidecars mixed", sidecarB + initA + mainC, "sidecar b, init a, container c"},
		{"and the other way", initA + sidecarB + mainC, "init a, sidecar b, container c"},
		{"mains after all others", mainD + sidecarB + mainC + initA, "sidecar b, init a, container d, container c"},
	} {
		spec := good(t, pod(c.text)).Specs[0]
		pod, err := Render(&spec.Set, spec.Template, envOf(0))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range pod.Containers {
			got = append(got, c.Kind+" "+c.Name)
		}
		if got := strings.Join(got, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.rule, got, c.want)
		}
	}
}

func TestAnotherOrderIsAnotherTemplate(t *testing.T) {
	for _, c := range []struct {
		rule, a, b string
		equal      bool
	}{
		{"of mains", mainC + mainD, mainD + mainC, false},
		{"of an init and a sidecar", initA + sidecarB + mainC, sidecarB + initA + mainC, false},
		{"on paper alone", initA + mainC, mainC + initA, true},
	} {
		if a, b := template(t, pod(c.a)), template(t, pod(c.b)); a.Equal(b) != c.equal {
			t.Errorf("%s:\n%s\n%s", c.rule, a, b)
		}
	}
	if got, want := string(template(t, pod(mainC))), `{"container":{"c":{"image":"x"}}}`; got != want {
		t.Errorf("a template of one container: %s, want %s", got, want)
	}
	if got, want := string(template(t, pod(initA+mainC))), `{"container":{"c":{"image":"x"}},"init":{"a":{"image":"x"}},"order":["a","c"]}`; got != want {
		t.Errorf("a template of two: %s, want %s", got, want)
	}
	want := []jobspecs.Change{{Path: "order", Before: `["c", "d"]`, After: `["d", "c"]`}}
	if got := Diff(template(t, pod(mainC+mainD)), template(t, pod(mainD+mainC))); !reflect.DeepEqual(got, want) {
		t.Errorf("diff %q, want %q", got, want)
	}
}

func TestDiffOfContainers(t *testing.T) {
	for _, c := range []struct {
		rule, a, b string
		want       []jobspecs.Change
	}{
		{"a sidecar's image", sidecarB + mainC, strings.Replace(sidecarB, `"x"`, `"y"`, 1) + mainC, []jobspecs.Change{{Path: "sidecar.b.image", Before: `"x"`, After: `"y"`}}},
		{"a new init", mainC, initA + mainC, []jobspecs.Change{{Path: "init.a.image", After: `"x"`}, {Path: "order", After: `["a", "c"]`}}},
		{"a hook", mainC, blockOf("container", "c", "lifecycle {\npre_stop {\nsleep {\nduration = \"1s\"\n}\n}\n}"), []jobspecs.Change{{Path: "container.c.lifecycle.pre_stop.sleep.duration", After: `"1s"`}}},
		{"shared processes", mainC, "share_processes = true\n" + mainC, []jobspecs.Change{{Path: "share_processes", After: "true"}}},
		{"a scratch folder", mainC, "scratch \"s\" {\nmedium = \"memory\"\n}\n" + blockOf("container", "c", "mount \"s\" {\npath = \"/s\"\n}"), []jobspecs.Change{{Path: "container.c.mount.s.path", After: `"/s"`}, {Path: "scratch.s.medium", After: `"memory"`}}},
	} {
		if got := Diff(template(t, pod(c.a)), template(t, pod(c.b))); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.rule, got, c.want)
		}
	}
}

func TestDataChangesOfSeveralContainers(t *testing.T) {
	volume := "volume \"data\" {\n}\n"
	at := func(kind, name, lines string) string { return blockOf(kind, name, "mount \"data\" {\n"+lines+"\n}") }
	base := pod(volume + at("container", "web", "path = \"/data\""))
	for _, c := range []struct {
		rule, before, after string
		want                []string
	}{
		{"a sidecar that sees it too", base, pod(volume + at("container", "web", "path = \"/data\"") + at("sidecar", "s", "path = \"/s\"")), nil},
		{"a container of another name", base, pod(volume + at("container", "app", "path = \"/data\"")), nil},
		{"seen by the sidecar only", base, pod(volume + mainOf("web") + at("sidecar", "s", "path = \"/data\"")), []string{"data: claim data is mounted at /data instead of /data"}},
		{"a part of it", base, pod(volume + at("container", "web", "path = \"/data\"\nsub_path = \"a\"")), []string{`data: claim data is mounted at /data (sub_path "a") instead of /data`}},
		{"a scratch folder of its name", base, pod("scratch \"data\" {\n}\n" + at("container", "web", "path = \"/data\"")), []string{"data: claim data is no longer mounted"}},
	} {
		a, b := good(t, c.before).Specs[0], good(t, c.after).Specs[0]
		if got := DataChanges(&a.Set, &b.Set, a.Template, b.Template); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q\nwant %q", c.rule, got, c.want)
		}
	}
}

func mainOf(name string) string { return blockOf("container", name, "") }

func TestImagesOfSeveralContainers(t *testing.T) {
	before := template(t, pod(initA+sidecarB+mainC+mainD))
	for _, c := range []struct{ name, want string }{
		{"a", "a=y b=x c=x d=x"},
		{"b", "a=x b=y c=x d=x"},
		{"d", "a=x b=x c=x d=y"},
		{"*", "a=y b=y c=y d=y"},
		{"", "name the container, or * for all: there are a, b, c, d"},
		{"e", `there is no container "e"; there is a, b, c, d`},
	} {
		after, err := WithImages(before, map[string]string{c.name: "y"})
		var got []string
		for _, i := range Images(after) {
			got = append(got, i.Container+"="+i.Ref)
		}
		said := strings.Join(got, " ")
		if err != nil {
			said = err.Error()
		}
		if said != c.want {
			t.Errorf("%q: %s, want %s", c.name, said, c.want)
		}
	}
}

func TestPullPolicyOfTheCommandLineReachesEveryContainer(t *testing.T) {
	f, ds := Parse([]jobspecs.Source{{Name: "a.hcl", Text: []byte(pod(initA + sidecarB + mainC))}}, jobspecs.Inputs{}, Options{Pull: "never", Images: map[string]string{"x": "y"}})
	if f == nil {
		t.Fatal(reportOf(ds))
	}
	want := []jobspecs.Image{{Container: "a", Ref: "y", Pull: "never"}, {Container: "b", Ref: "y", Pull: "never"}, {Container: "c", Ref: "y", Pull: "never"}}
	if got := f.Specs[0].Images; !reflect.DeepEqual(got, want) {
		t.Errorf("images %v, want %v", got, want)
	}
}

func TestAFileMayBeLongButNotWithoutEnd(t *testing.T) {
	atLeisure(t)
	const mib = 1 << 20
	text := func(n int) string {
		return web("file \"/a\" {\ncontent = join(\"\", [" + strings.Repeat("file(\"m\"), ", n) + "])\n}")
	}
	opt := Options{ReadFile: disk(map[string]string{"m": strings.Repeat("m", mib)})}
	f, ds := Parse([]jobspecs.Source{{Name: "a.hcl", Text: []byte(text(16))}}, jobspecs.Inputs{}, opt)
	if f == nil {
		t.Fatal(reportOf(ds))
	}
	pod, err := Render(&f.Specs[0].Set, f.Specs[0].Template, envOf(0))
	if err != nil || len(pod.Containers[0].Files[0].Content) != 16*mib {
		t.Errorf("16 MiB: %d bytes, %v", len(pod.Containers[0].Files[0].Content), err)
	}
	_, ds = Parse([]jobspecs.Source{{Name: "a.hcl", Text: []byte(text(17))}}, jobspecs.Inputs{}, opt)
	if want := "the file has 17825792 bytes; 16777216 (16 MiB) is the most"; !HasErrors(ds) || ds[0].Summary != want || ds[0].Line != 6 {
		t.Errorf("found %+v, want %s in line 6", ds[0], want)
	}
}

func TestRenderGivesEverythingOfAPod(t *testing.T) {
	spec := fullSpec(t)
	env := envOf(2)
	env.Ordinals = []int{1, 2}
	pod, err := Render(&spec.Set, spec.Template, env)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(withoutContents(pod), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/full.json", string(text)+"\n")
	redis := pod.First()
	wantFiles := []jobspecs.File{
		{Path: "/etc/redis.conf", Mode: 0o644, Owner: "999:999", Content: []byte("dir /data\nprotected-mode no\npidfile /run/redis/redis.pid\ninclude /run/secrets/redis.conf\n" +
			"replica-announce-ip full-2.full-nodes.full.svc.cluster.local\nreplicaof full-1.full-nodes.full.svc.cluster.local 6379\n")},
		{Path: "/run/secrets/redis.conf", Mode: 0o600, Owner: "999:999", Sensitive: true, Content: []byte("requirepass 0123456789abcdef\nmasterauth 0123456789abcdef\n")},
	}
	if !reflect.DeepEqual(redis.Files, wantFiles) {
		t.Errorf("files %v\nwant  %v", redis.Files, wantFiles)
	}
	wantPorts := []jobspecs.Port{{Name: "grpc", Container: 9090, Protocol: "tcp"}, {Name: "health", Container: 8080, Protocol: "tcp"}, {Name: "client", Container: 6379, Protocol: "tcp"}}
	if !reflect.DeepEqual(spec.Ports, wantPorts) {
		t.Errorf("ports %v, want %v", spec.Ports, wantPorts)
	}
}

// withoutContents leaves out the contents of files, which JSON cannot be read in.
func withoutContents(pod jobspecs.PodSpec) jobspecs.PodSpec {
	pod.Containers = slices.Clone(pod.Containers)
	for i := range pod.Containers {
		files := slices.Clone(pod.Containers[i].Files)
		for j := range files {
			files[j].Content = nil
		}
		pod.Containers[i].Files = files
	}
	return pod
}

func fullText(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/full.hcl")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func fullSpec(t *testing.T) jobspecs.Spec {
	t.Helper()
	in := jobspecs.Inputs{Secrets: map[string]string{SecretKey("full", "cookie"): "0123456789abcdef"}}
	f, ds := Parse([]jobspecs.Source{{Name: "full.hcl", Text: fullText(t)}}, in, Options{})
	if f == nil || len(ds) > 0 {
		t.Fatal(reportOf(ds))
	}
	return f.Specs[0]
}

func TestTheFullSpecIsFormatted(t *testing.T) {
	text := fullText(t)
	if got, _ := Format("full.hcl", text); string(got) != string(text) {
		t.Errorf("not formatted:\n%s", got)
	}
}

func TestTheFullSpecHasEveryField(t *testing.T) {
	r := &report{}
	bodies := r.parse([]jobspecs.Source{{Name: "full.hcl", Text: fullText(t)}})
	if bodies == nil {
		t.Fatal(reportOf(r.done()))
	}
	met := map[*block]map[string]bool{}
	for _, b := range bodies {
		meet(b, fileSchema, met)
	}
	for _, name := range missing(fileSchema, met) {
		t.Errorf("%s is not in testdata/full.hcl", name)
	}
}

// meet notes which names of each block of the schema were written.
func meet(b *hclsyntax.Body, s *block, met map[*block]map[string]bool) {
	if met[s] == nil {
		met[s] = map[string]bool{}
	}
	for name := range b.Attributes {
		met[s][name] = true
	}
	for _, c := range b.Blocks {
		met[s][c.Type] = true
		if known := s.block(c.Type); known != nil {
			meet(c.Body, known, met)
		}
	}
}

// missing are the names that no block of their kind has.
func missing(s *block, met map[*block]map[string]bool) []string {
	var names []string
	for _, a := range s.attrs {
		if !a.later && !met[s][a.name] {
			names = append(names, s.where()+": "+a.name)
		}
	}
	for _, c := range s.blocks {
		switch {
		case c.later:
		case !met[s][c.name]:
			names = append(names, s.where()+": "+c.name)
		case c.like == nil:
			names = append(names, missing(c, met)...)
		}
	}
	return names
}

func TestProbesAndHooksOfAPod(t *testing.T) {
	spec := good(t, web(`
		port "http" {
			container = 80 + self.ordinal
		}
		probe "startup" {
			log {
				pattern = "ready as ${self.name}"
			}
		}
		probe "readiness" {
			grpc {
				port    = "http"
				service = "db"
			}
			success_threshold = 2
		}
		probe "role" {
			exec {
				command = ["role", self.name]
			}
			period = "1s"
		}
		lifecycle {
			post_start {
				http {
					port    = "http"
					path    = "/up/${self.ordinal}"
					scheme  = "https"
					headers = { Host = self.fqdn }
				}
			}
			pre_stop {
				sleep {
					duration = "${self.ordinal + 1}s"
				}
			}
		}`)).Specs[0]
	pod, err := Render(&spec.Set, spec.Template, envOf(1))
	if err != nil {
		t.Fatal(err)
	}
	probe := func(p jobspecs.Probe, period time.Duration, successes, failures int) *jobspecs.Probe {
		p.Period, p.Timeout, p.SuccessThreshold, p.FailureThreshold = period, 5*time.Second, successes, failures
		return &p
	}
	got := pod.Containers[0]
	want := jobspecs.Container{
		Kind: "container", Name: "web", Image: "x", Pull: "missing", Restart: got.Restart,
		Ports:     []jobspecs.Port{{Name: "http", Container: 81, Protocol: "tcp"}},
		Startup:   probe(jobspecs.Probe{Log: &jobspecs.LogCheck{Pattern: "ready as web-1"}}, 10*time.Second, 1, 3),
		Readiness: probe(jobspecs.Probe{GRPC: &jobspecs.GRPCCheck{Port: 81, Service: "db"}}, 10*time.Second, 2, 3),
		Role:      probe(jobspecs.Probe{Exec: []string{"role", "web-1"}}, time.Second, 1, 1),
		PostStart: &jobspecs.Handler{HTTP: &jobspecs.HTTPCheck{Port: 81, Path: "/up/1", Scheme: "https", Headers: map[string]string{"Host": "web-1.web.default.svc.cluster.local"}}},
		PreStop:   &jobspecs.Handler{Sleep: 2 * time.Second},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("container %+v\nwant      %+v", got, want)
	}
}
