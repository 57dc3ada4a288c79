package hcl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/examples"
)

// parse reads one file without anything beside it.
func parse(text string) (*File, []jobspecs.Diagnostic) {
	return Parse([]jobspecs.Source{{Name: "a.hcl", Text: []byte(text)}}, jobspecs.Inputs{}, Options{})
}

// good is what a sound text says.
func good(t *testing.T, text string) *File {
	t.Helper()
	f, ds := parse(text)
	if f == nil {
		t.Fatalf("%s\nin\n%s", reportOf(ds), text)
	}
	return f
}

// web is a set whose container has the lines given; pod one with lines in the block itself.
func web(lines string) string { return pod("container \"web\" {\nimage = \"x\"\n" + lines + "\n}") }

func pod(lines string) string { return "statefulset \"web\" {\nreplicas = 3\n" + lines + "\n}" }

// found is what a text gets said, one line for each: its summary.
func found(text string) string {
	_, ds := parse(text)
	var lines []string
	for _, d := range ds {
		lines = append(lines, d.Summary)
	}
	return strings.Join(lines, "\n")
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ rule, text, want string }{
		{"an empty file", "", "no statefulset block"},
		{"a file without a set", "locals {\na = 1\n}", "no statefulset block"},
		{"binary garbage", "\x00\x01\xff", "this is not a text file"},
		{"a broken line", "statefulset \"web\" {\n", "unclosed configuration block"},
		{"a set without a name", "statefulset {\n}", "statefulset needs a label"},
		{"a set with two names", "statefulset \"a\" \"b\" {\n}", "statefulset has a label too many"},
		{"a name that is no DNS label", "statefulset \"Web\" {\n}", `"Web" is no DNS label: want lower-case letters, digits and dashes, with a letter or digit at both ends`},
		{"a name too long for its revision", "statefulset \"" + strings.Repeat("a", 53) + "\" {\ncontainer \"a\" {\nimage = \"x\"\n}\n}", "the set's name is too long"},
		{"ordinals past the last", "statefulset \"a\" {\nreplicas = 2\nstart_ordinal = 2147483647\ncontainer \"a\" {\nimage = \"x\"\n}\n}", "the last ordinal would be 2147483648; 2147483647 is the most"},
		{"a set without a container", pod(""), `statefulset "web" needs a container`},
		{"a container without an image", pod("container \"web\" {\n}"), "container needs image"},
		{"a block twice", pod("update {\n}\nupdate {\n}\ncontainer \"a\" {\nimage = \"x\"\n}"), "there are two blocks update"},
		{"a port name twice", web("port \"a\" {\ncontainer = 1\n}\nport \"a\" {\ncontainer = 2\n}"), `there are two blocks port "a"`},
		{"one file by two spellings", web("file \"/a\" {\ncontent = \"\"\n}\nfile \"//a\" {\ncontent = \"\"\n}"), `there are two blocks file "//a"`},
		{"an attribute twice", web("image = \"y\""), "attribute redefined"},
		{"an attribute as a block", web("env {\n}"), "env is an attribute"},
		{"a block as an attribute", web("port = 80"), "port is a block"},
		{"two arguments on one line", web("port \"a\" { container = 80, host = 80 }"), "one line for more than one argument"},
		{"a block within a line", web("probe \"liveness\" { tcp { port = 80 } }"), "a block on one line cannot hold another block"},
		{"an unknown attribute", pod("replicas_ = 1\n"), "statefulset \"web\" needs a container\nthe statefulset block has no attribute \"replicas_\""},
		{"self at the set", pod("service = self.name\ncontainer \"a\" {\nimage = \"x\"\n}"), "self has no value here"},
		{"set in top-level locals", "locals {\na = set.name\n}\n" + web(""), "set has no value here"},
		{"self through the set's locals", pod("locals {\na = self.name\n}\nservice = local.a\ncontainer \"a\" {\nimage = \"x\"\n}"), "local.a depends on self or set, which have no value here"},
		{"a secret that is not declared", web("args = [secret.cookie]"), `there is no secret "cookie"`},
		{"an unknown field of self", web("args = [self.nme]"), `self has no "nme"`},
		{"an unknown variable", web("args = [var.x]"), `there is no variable "x"`},
		{"a bare word", web("user = redis"), `there is no "redis"`},
		{"a loop variable called self", web("args = [for self in set.peers : self.name]"), `"self" cannot be the name of a for expression's variable`},
		{"a local declared twice", "locals {\na = 1\n}\nlocals {\na = 2\n}\n" + web(""), "local.a is declared twice"},
		{"a variable declared twice", "variable \"a\" {\ndefault = 1\n}\nvariable \"a\" {\n}\n" + web(""), `variable "a" is declared twice`},
		{"a variable without a value", "variable \"a\" {\n}\n" + web(""), `variable "a" has no value`},
		{"a default that uses a name", "variable \"a\" {\ndefault = local.x\n}\n" + web(""), "a variable's default may use no names"},
		{"a default of another type", "variable \"a\" {\ntype = number\ndefault = \"x\"\n}\n" + web(""), `the default of variable "a" does not fit its type`},
		{"a value that its validation refuses", "variable \"a\" {\ndefault = \"\"\nvalidation {\ncondition = var.a != \"\"\nerror_message = \"no\"\n}\n}\n" + web(""), `the value of variable "a" is refused`},
		{"env() elsewhere", web("args = [env(\"HOME\")]"), "error in function call"},
		{"negative replicas", "statefulset \"web\" {\nreplicas = -1\ncontainer \"a\" {\nimage = \"x\"\n}\n}", "-1 is not a whole number from 0 to 10000"},
		{"half a replica", "statefulset \"web\" {\nreplicas = 1.5\ncontainer \"a\" {\nimage = \"x\"\n}\n}", "1.5 is not a whole number from 0 to 10000"},
		{"replicas in words", "statefulset \"web\" {\nreplicas = \"three\"\ncontainer \"a\" {\nimage = \"x\"\n}\n}", `this takes a whole number from 0 to 10000, not "three"`},
		{"a duration without a unit", web("restart {\nmax = 30\n}"), `"30" has no unit: write "30s" for seconds`},
		{"a negative duration", web("restart {\nmax = \"-1s\"\n}"), `"-1s" is negative`},
		{"a period of nothing", web("probe \"liveness\" {\nperiod = \"0s\"\ntcp {\nport = 1\n}\n}"), `"0s" is too short: want 100ms at least`},
		{"a size of words", web("resources {\nmemory = \"much\"\n}"), `"much" is no size: want a number and a unit, as in 64MiB or 1GiB`},
		{"less memory than Docker takes", web("resources {\nmemory = \"1MiB\"\n}"), `"1MiB" is too little: Docker takes 6MiB at least`},
		{"no cores", web("resources {\ncpu = 0\n}"), "0 is no number of cores: want more than 0, as in 0.5"},
		{"more than all", pod("update {\nmax_unavailable = \"101%\"\n}\ncontainer \"a\" {\nimage = \"x\"\n}"), `"101%" is more than all`},
		{"nobody unavailable", pod("update {\nmax_unavailable = 0\n}\ncontainer \"a\" {\nimage = \"x\"\n}"), `"0" is too little: at least 1 member may be unavailable, or nothing could be updated`},
		{"a string for a list", web("args = \"a b\""), `this takes a list, as in ["a", "b"], not "a b"`},
		{"null in a list", web("args = [null]"), "element 0: null is not a string"},
		{"a list for a string", web("user = [1]"), "this takes a string, not a list"},
		{"an unknown word", web("pull = \"allways\""), `"allways" is none of "missing", "always", "never"; did you mean "always"?`},
		{"a kernel setting of the host", pod("sysctls = { \"vm.swappiness\" = 1 }\ncontainer \"a\" {\nimage = \"x\"\n}"), `sysctl "vm.swappiness" does not belong to a pod: only net.* does`},
		{"a label of ours", pod("labels = { \"stsd.set\" = 1 }\ncontainer \"a\" {\nimage = \"x\"\n}"), `label "stsd.set": names that begin with stsd. are stsd's own`},
		{"an address of words", pod("extra_hosts = { db = \"host-gateway\" }\ncontainer \"a\" {\nimage = \"x\"\n}"), `db: "host-gateway" is Docker's word; the host's address is self.host_ip here`},
		{"a mode that is a number", web("file \"/a\" {\ncontent = \"\"\nmode = 0644\n}"), `this takes a string of octal digits, as in "0644", not 644`},
		{"an owner by name", web("file \"/a\" {\ncontent = \"\"\nowner = \"redis\"\n}"), `"redis" is no owner: want numbers, as in "999:999" (names are known inside the image only)`},
		{"a file that is a folder", web("file \"/a/\" {\ncontent = \"\"\n}"), `"/a/" is the path of a folder, not of a file`},
		{"a relative file", web("file \"a\" {\ncontent = \"\"\n}"), `"a" is no absolute path: want a slash at its beginning`},
		{"a probe of an unknown kind", web("probe \"ready\" {\ntcp {\nport = 1\n}\n}"), `"ready" is no kind of probe: want "startup", "readiness", "liveness", "role"`},
		{"a probe without a check", web("probe \"liveness\" {\n}"), `probe "liveness" needs exactly one of exec, http, tcp, grpc, log`},
		{"a probe with two", web("probe \"liveness\" {\ntcp {\nport = 1\n}\nexec {\ncommand = [\"x\"]\n}\n}"), `probe "liveness" needs exactly one of exec, http, tcp, grpc, log`},
		{"a probe of a port that is not there", web("port \"http\" {\ncontainer = 80\n}\nprobe \"liveness\" {\ntcp {\nport = \"htp\"\n}\n}"), `there is no port "htp" in this container; did you mean "http"?`},
		{"liveness by two successes", web("probe \"liveness\" {\nsuccess_threshold = 2\ntcp {\nport = 1\n}\n}"), "success_threshold of a liveness probe is always 1"},
		{"a mount of nothing", web("mount \"data\" {\npath = \"/\"\n}"), `there is no volume, scratch or bind "data" to mount`},
		{"one host port for all", web("port \"http\" {\ncontainer = 80\nhost = 80\n}"), "host port 80/tcp would be published twice: by web-0 and by web-1"},
		{"a host port that some members share", web("port \"http\" {\ncontainer = 80\nhost = 80 + self.ordinal % 2\n}"), "host port 80/tcp would be published twice: by web-0 and by web-2"},
		{"a host port on one address and on all", web("port \"a\" {\ncontainer = 80\nhost = 80 + self.ordinal\n}\nport \"b\" {\ncontainer = 81\nhost = 80 + self.ordinal\nhost_ip = \"0.0.0.0\"\n}"), "host port 80/tcp would be published twice: by web-0 and by web-0"},
		{"a host port past the last", web("port \"http\" {\ncontainer = 80\nhost = 65534 + self.ordinal\n}"), "65536 is not a whole number from 1 to 65535"},
		{"ports of two members that meet by host_access", host("ports", "port \"a\" {\ncontainer = 80\n}\nport \"b\" {\ncontainer = 81\n}"), "host port 81/tcp would be published twice: by web-0 and by web-1"},
		{"a port past the last by host_access", host("ports", "port \"http\" {\ncontainer = 65534\n}"), "web-2 would be published at port 65536 of the host; 65535 is the last"},
		{"an unknown mode of host_access", host("bridge", ""), `"bridge" is none of "direct", "loopback", "ports", "none"`},
		{"overlapping mounts", pod("volume \"a\" {\n}\nvolume \"b\" {\n}\ncontainer \"c\" {\nimage = \"x\"\nmount \"a\" {\npath = \"/data\"\n}\nmount \"b\" {\npath = \"/data/b/\"\n}\n}"), `mount paths overlap: /data/b of "b" and /data of "a"`},
		{"a file below a file", web("file \"/a\" {\ncontent = \"\"\n}\nfile \"/a/b\" {\ncontent = \"\"\n}"), "/a/b cannot be below /a, which is a file"},
		{"an expression that fails for a member", web("args = [set.members[self.index + 2].name]"), "invalid index"},
		{"a value that fails for a member", web("probe \"liveness\" {\nfailure_threshold = self.ordinal\ntcp {\nport = 1\n}\n}"), "0 is not a whole number from 1 to 1000000"},
		{"a file named by a member", web("args = [file(\"${self.name}.txt\")]"), "the path of file() may use var and local only"},
		{"two sets of one name", web("") + "\n" + web(""), "there are two sets default/web"},
		{"a set named like a member of one before", web("") + "\nstatefulset \"web-1\" {\ncontainer \"a\" {\nimage = \"x\"\n}\n}", "these sets cannot live side by side"},
		{"a set with a member named like one before", "statefulset \"web-1\" {\ncontainer \"a\" {\nimage = \"x\"\n}\n}\n" + web(""), "these sets cannot live side by side"},
		{"deep nesting", "a = " + strings.Repeat("[", 100000), "this is nested more than 100 deep"},
		{"a row of operators", "a = " + strings.Repeat("!", 100000) + "true", "this expression has more than 1000 operators"},
		{"a sum without end", "a = 1" + strings.Repeat("+1", 100000), "this expression has more than 1000 operators"},
		{"a number of a gigabyte", web("user = 1e999999999"), "this number is too large"},
	} {
		if got := found(c.text); got != c.want {
			t.Errorf("%s: found %q, want %q", c.rule, got, c.want)
		}
	}
}

func TestParseWarns(t *testing.T) {
	for _, c := range []struct{ rule, text, want string }{
		{"of Kubernetes' variables", web(`args = ["$(POD_NAME)"]`), "$(POD_NAME) is Kubernetes' way and stays as it is here"},
		{"of a partition above all", pod("update {\npartition = 4\n}\ncontainer \"a\" {\nimage = \"x\"\n}"), "partition 4 is above every ordinal: no member will be updated"},
		{"of a volume that nobody sees", pod("volume \"a\" {\n}\ncontainer \"a\" {\nimage = \"x\"\n}"), `volume "a" is never mounted`},
	} {
		f, _ := parse(c.text)
		if got := found(c.text); got != c.want || f == nil {
			t.Errorf("%s: found %q, file %v; want %q", c.rule, got, f, c.want)
		}
	}
}

func TestParseTakes(t *testing.T) {
	for rule, text := range map[string]string{
		"shell behind two dollar signs":    web(`args = ["$${HOSTNAME##*-}"]`),
		"shell in a comment":               web("# ${HOSTNAME##*-}"),
		"a command's output":               web(`args = ["echo $(hostname)"]`),
		"a remainder":                      web(`args = ["${self.ordinal%2}"]`),
		"Windows' line ends":               strings.ReplaceAll(web("user = \"1\""), "\n", "\r\n"),
		"a byte order mark":                "\xef\xbb\xbf" + web(""),
		"two addresses, one port":          web("port \"a\" {\ncontainer = 80\nhost = 80 + self.ordinal\n}\nport \"b\" {\ncontainer = 81\nhost = 80 + self.ordinal\nhost_ip = \"127.0.0.2\"\n}"),
		"tcp and udp on one port":          web("port \"a\" {\ncontainer = 53\nhost = 53 + self.ordinal\n}\nport \"b\" {\ncontainer = 53\nprotocol = \"udp\"\nhost = 53 + self.ordinal\n}"),
		"one volume at two paths":          pod("volume \"a\" {\n}\ncontainer \"c\" {\nimage = \"x\"\nmount \"a\" {\npath = \"/a\"\n}\nmount \"a\" {\npath = \"/b\"\n}\n}"),
		"a file beside a mount":            pod("volume \"a\" {\n}\ncontainer \"c\" {\nimage = \"x\"\nmount \"a\" {\npath = \"/data\"\n}\nfile \"/database\" {\ncontent = \"\"\n}\n}"),
		"no replicas":                      "statefulset \"web\" {\nreplicas = 0\ncontainer \"a\" {\nimage = \"x\"\n}\n}",
		"peers of a set of one":            "statefulset \"web\" {\nreplicas = 1\ncontainer \"a\" {\nimage = \"x\"\nargs = [join(\",\", set.peers[*].fqdn)]\n}\n}",
		"a neighbour, but not the first's": web("args = [self.index > 0 ? set.members[self.index - 1].name : \"\"]"),
		"two sets":                         web("") + "\nstatefulset \"db\" {\ncontainer \"a\" {\nimage = \"x\"\n}\n}",
		"one name in two namespaces":       web("") + "\nstatefulset \"web\" {\nnamespace = \"b\"\ncontainer \"a\" {\nimage = \"x\"\n}\n}",
	} {
		if got := found(text); got != "" {
			t.Errorf("%s: found %q", rule, got)
		}
	}
}

func TestEveryNameOfTheLanguageIsRead(t *testing.T) {
	text, err := os.ReadFile("testdata/everything.hcl")
	if err != nil {
		t.Fatal(err)
	}
	r := &report{}
	source := []jobspecs.Source{{Name: "everything.hcl", Text: text}}
	r.evaluate(r.parse(source), source, jobspecs.Inputs{}, Options{AllowMissing: true})
	for _, d := range r.found {
		if d.Severity == "error" {
			t.Errorf("line %d: %s", d.Line, d.Summary)
		}
	}
}

func TestReportsReadLikeThis(t *testing.T) {
	files, err := filepath.Glob("testdata/found/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, ds := Parse([]jobspecs.Source{{Name: filepath.Base(name), Text: text}}, jobspecs.Inputs{}, Options{})
		golden(t, strings.TrimSuffix(name, ".hcl")+".txt", reportOf(ds))
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
	}
}

func TestAFileThatIsTooLongIsRefusedAtOnce(t *testing.T) {
	got := found(strings.Repeat("# x\n", 3<<20))
	if want := "the file has 12582912 bytes; 1048576 (1 MiB) is the most"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestManyFindingsAreCut(t *testing.T) {
	_, ds := parse(web(strings.Repeat("x {\n}\n", 500)))
	if len(ds) != maxFindings+1 || ds[maxFindings].Summary != "and 480 more" {
		t.Errorf("%d findings, the last %v", len(ds), ds[len(ds)-1])
	}
}

func TestLocalsThatDoubleOneAnotherDoNotFillTheMemory(t *testing.T) {
	lines := []string{"a0 = \"0123456789\""}
	for i := 1; i < 60; i++ {
		n := string(rune('0'+i/10)) + string(rune('0'+i%10))
		p := "a0"
		if i > 1 {
			p = "b" + string(rune('0'+(i-1)/10)) + string(rune('0'+(i-1)%10))
		}
		lines = append(lines, "b"+n+" = \"${local."+p+"}${local."+p+"}\"")
	}
	locals := "locals {\n" + strings.Join(lines, "\n") + "\n}\n"
	if got, want := found(locals+web("user = local.b59")), "local.b19 is larger than 4 MiB"; got != want {
		t.Errorf("constant: found %q, want %q", got, want)
	}
	symbolic := strings.Replace(locals, "0123456789", "${self.name}", 1)
	if got, want := found(pod(symbolic+"container \"a\" {\nimage = \"x\"\nuser = local.b59\n}")), "local.b20 is larger than 4 MiB\nwith its locals put in, this expression is longer than 256 KiB"; got != want {
		t.Errorf("symbolic: found %q, want %q", got, want)
	}
}

// disk is a folder in memory.
func disk(files map[string]string) func(string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
}

func TestTheSameInputsGiveTheSameSpecWithoutADisk(t *testing.T) {
	source := []jobspecs.Source{{Name: "a.hcl", Text: []byte(`
		variable "home" {
			default = env("HOME")
		}
		variable "image" {
		}
		variable "list" {
			type = list(string)
		}
		locals {
			shared = file("shared.txt")
		}
		statefulset "web" {
			replicas = 2
			container "web" {
				image = var.image
				user  = var.home
				args  = concat(var.list, [self.name, templatefile("member.tmpl", { name = self.name })])
				env = {
					SHARED = "${local.shared}${self.ordinal}"
					ABSENT = fileexists("no.txt") ? 1 : 0
					MAYBE  = self.ordinal > 5 && fileexists("no.txt") ? file("shared.txt") : "none"
				}
			}
		}`)}}
	given := jobspecs.Inputs{Vars: raw(map[string]string{"image": `"x:1"`, "list": `["a","b"]`, "gone": `1`})}
	opt := Options{
		ReadFile:  disk(map[string]string{"shared.txt": "S", "member.tmpl": "I am ${name}."}),
		LookupEnv: func(string) (string, bool) { return "/home/x", true },
		Images:    map[string]string{"x:1": "x:2", "y": "z"},
		Pull:      "always",
	}
	first, ds := Parse(source, given, opt)
	if first == nil {
		t.Fatal(reportOf(ds))
	}
	second, ds := Parse(source, first.Inputs, Options{})
	if second == nil {
		t.Fatal(reportOf(ds))
	}
	if !reflect.DeepEqual(first, second) {
		t.Errorf("first  %+v\nsecond %+v", first, second)
	}
	wantInputs := jobspecs.Inputs{
		Vars:   raw(map[string]string{"image": `"x:1"`, "list": `["a","b"]`}),
		Files:  map[string][]byte{"shared.txt": []byte("S"), "member.tmpl": []byte("I am ${name}.")},
		Absent: map[string]bool{"no.txt": true},
		Env:    map[string]string{"HOME": "/home/x"},
		Images: map[string]string{"x:1": "x:2", "y": "z"},
		Pull:   "always",
	}
	if !reflect.DeepEqual(first.Inputs, wantInputs) {
		t.Errorf("inputs %+v\nwant   %+v", first.Inputs, wantInputs)
	}
	if want := []string{"x:1"}; !reflect.DeepEqual(first.Replaced, want) {
		t.Errorf("replaced %v, want %v", first.Replaced, want)
	}
	spec := first.Specs[0]
	got, err := Render(&spec.Set, spec.Template, sampleOf(&spec.Set, 1, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := jobspecs.Container{
		Kind: "container", Name: "web", Image: "x:2", Pull: "always", User: "/home/x",
		Args:    []string{"a", "b", "web-1", "I am web-1."},
		Env:     map[string]string{"SHARED": "S1", "ABSENT": "0", "MAYBE": "none"},
		Restart: got.Containers[0].Restart,
	}
	if !reflect.DeepEqual(got.Containers[0], want) {
		t.Errorf("container %+v\nwant      %+v", got.Containers[0], want)
	}
}

func TestTheDaemonReadsNoDisk(t *testing.T) {
	if got := found(web(`args = [file("/etc/passwd")]`)); got != "error in function call" {
		t.Errorf("found %q", got)
	}
	_, ds := parse("variable \"a\" {\ndefault = env(\"HOME\")\n}\n" + web(""))
	if !HasErrors(ds) || !strings.Contains(ds[0].Detail, "the environment variable HOME was not sent along with the spec") {
		t.Errorf("found %v", ds)
	}
}

func TestAFileThatCannotBeReadIsSaid(t *testing.T) {
	opt := Options{ReadFile: func(string) ([]byte, error) { return nil, errors.New("disk on fire") }}
	_, ds := Parse([]jobspecs.Source{{Name: "a.hcl", Text: []byte(web(`args = ["${self.name}${file("x")}"]`))}}, jobspecs.Inputs{}, opt)
	if !HasErrors(ds) || ds[0].Summary != `read "x": disk on fire` {
		t.Errorf("found %v", ds)
	}
}

func TestAMissingVariableMayBeUnknown(t *testing.T) {
	text := "variable \"n\" {\n}\n" + strings.Replace(web("args = [var.n, self.name]\nuser = var.n\nenv = { A = \"${var.n}${self.name}\" }"), "3", "var.n", 1)
	f, ds := Parse([]jobspecs.Source{{Name: "a.hcl", Text: []byte(text)}}, jobspecs.Inputs{}, Options{AllowMissing: true})
	if f == nil {
		t.Fatal(reportOf(ds))
	}
	want := []Variable{{Name: "n"}}
	if f.Specs[0].Set.Name != "web" || f.Specs[0].Set.Replicas != nil || !reflect.DeepEqual(f.Vars, want) {
		t.Errorf("set %+v, vars %+v", f.Specs[0].Set, f.Vars)
	}
}

func TestFilesOfOneScopeShareNames(t *testing.T) {
	f, ds := Parse([]jobspecs.Source{
		{Name: "a.hcl", Text: []byte("locals {\nimage = var.image\n}")},
		{Name: "b.hcl", Text: []byte("variable \"image\" {\ndefault = \"y\"\n}\n" + strings.Replace(web(""), `"x"`, "local.image", 1))},
	}, jobspecs.Inputs{}, Options{})
	if f == nil {
		t.Fatal(reportOf(ds))
	}
	want := []jobspecs.Image{{Container: "web", Ref: "y", Pull: "missing"}}
	if got := f.Specs[0].Images; !reflect.DeepEqual(got, want) {
		t.Errorf("images %v, want %v", got, want)
	}
	if f.Specs[0].File != "b.hcl" || f.Specs[0].Line != 4 {
		t.Errorf("at %s:%d", f.Specs[0].File, f.Specs[0].Line)
	}
}

func TestExamplesAreGoodAndFormatted(t *testing.T) {
	if got, want := examples.Names(), []string{"etcd", "rabbitmq", "redis", "redis-roles", "web"}; !reflect.DeepEqual(got, want) {
		t.Errorf("names %v, want %v", got, want)
	}
	for _, name := range examples.Names() {
		text, _ := examples.Get(name)
		_, ds := Parse([]jobspecs.Source{{Name: name + ".hcl", Text: text}}, jobspecs.Inputs{}, Options{AllowMissing: true}) // secrets are the daemon's to make
		if len(ds) > 0 {
			t.Errorf("%s: found\n%s", name, reportOf(ds))
		}
		if got, _ := Format(name, text); string(got) != string(text) {
			t.Errorf("%s is not formatted:\n%s", name, got)
		}
	}
}
