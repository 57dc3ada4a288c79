package test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows is the import graph: what a package may import of this project. Arrows
// go down only; a package that is not here must be written here first.
const arrows = `
jobspecs            <
# the vocabulary: whoever speaks of sets needs it, so it needs nobody
jobspecs/hcl        < jobspecs
jobspecs/kube       < jobspecs jobspecs/hcl
jobspecs/examples   <

volumes             < jobspecs
runtime             < jobspecs
# engines never import daemon or dns: they run pods and know nothing of sets' plans or of names
runtime/pods        < jobspecs runtime
runtime/docker      < jobspecs runtime runtime/pods runtime/docker/pause volumes
# a program in a few hundred bytes knows nothing of who runs it
runtime/docker/pause <
runtime/nomad       < jobspecs runtime volumes
runtime/sim         < jobspecs runtime runtime/pods volumes
runtime/enginetest  < jobspecs runtime volumes

# it answers from values that it is given, so that it can be measured and fuzzed alone
dns                 < jobspecs
# what it writes on a user's machine it decides from a few facts, so it is a package of values too
dns/hostdns         <

# types alone: a plan is a value, and no engine is asked for it
daemon/planner      < jobspecs runtime volumes
daemon/store        < jobspecs daemon/planner volumes
daemon/client       < jobspecs runtime
daemon/api          < jobspecs runtime daemon/client
# the engine is chosen in cmd/stsd, so the daemon runs on any
daemon              < jobspecs jobspecs/hcl runtime volumes dns dns/hostdns daemon/planner daemon/store daemon/client daemon/api

# it speaks to a running daemon through daemon/client, and to nothing behind it
cmd/stsd            < jobspecs jobspecs/hcl jobspecs/kube jobspecs/examples runtime runtime/docker runtime/nomad runtime/pods runtime/sim daemon daemon/client dns/hostdns

# what tests are made of
daemon/api/apitest  < jobspecs runtime daemon/client daemon/api
# programs of the tests stand alone
test/images/demo    <
test/mutate         <
`

// walls are modules that stay behind one package, and why.
var walls = []struct{ module, inside, why string }{
	{"go.etcd.io/bbolt", "daemon/store", "what is on disk is read and written in one place"},
	{"github.com/docker/docker", "runtime/docker", "its successor is then one package's change"},
	{"github.com/moby/moby", "runtime/docker", "the same"},
	{"github.com/hashicorp/nomad", "runtime/nomad", "an engine is one package"},
	{"github.com/miekg/dns", "dns", "packets are one file's business"},
	{"github.com/hashicorp/hcl", "jobspecs/hcl", "everything else sees values"},
	{"github.com/spf13/cobra", "cmd/stsd", "the command line is a skin"},
}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath, Dir                    string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
	Standard                           bool
}

const module = "github.com/stsd/stsd"

func (p listed) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func packages(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

// graph reads arrows.
func graph(t *testing.T) map[string][]string {
	t.Helper()
	g := map[string][]string{}
	for _, line := range strings.Split(arrows, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		from, to, ok := strings.Cut(line, "<")
		if !ok {
			t.Fatalf("no arrow in %q", line)
		}
		g[strings.TrimSpace(from)] = strings.Fields(to)
	}
	return g
}

func TestImportsGoDownOnly(t *testing.T) {
	t.Parallel()
	allowed := graph(t)
	for _, p := range packages(t) {
		name := p.name()
		if len(p.GoFiles) == 0 {
			continue // tests look everywhere
		}
		may, known := allowed[name]
		if !known {
			t.Errorf("package %s is not in the graph: write it into arrows, with the reason for what it may import", name)
			continue
		}
		for _, i := range p.Imports {
			inner, ours := strings.CutPrefix(i, module+"/")
			if ours && !slices.Contains(may, inner) {
				t.Errorf("%s imports %s, which points up or sideways; it may import %v", name, inner, may)
			}
			if !ours && name == "jobspecs" && strings.Contains(strings.Split(i, "/")[0], ".") {
				t.Errorf("jobspecs imports %s: it uses the standard library only", i)
			}
		}
	}
}

func TestModulesStayBehindTheirWalls(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, wall := range walls {
			all := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
			if p.name() == "test" || strings.HasPrefix(p.name(), "test/") {
				all = p.Imports
			}
			for _, i := range all {
				if (i == wall.module || strings.HasPrefix(i, wall.module+"/")) && p.name() != wall.inside {
					t.Errorf("%s imports %s, which stays inside %s: %s", p.name(), i, wall.inside, wall.why)
				}
			}
		}
	}
}

// sources calls f with every Go file of the project that is no test.
func sources(t *testing.T, dir string, f func(path string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			f(path, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func imports(file *ast.File) []string {
	var out []string
	for _, i := range file.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err == nil {
			out = append(out, path)
		}
	}
	return out
}

func TestOneFileSpeaksToMiekg(t *testing.T) {
	t.Parallel()
	sources(t, "dns", func(path string, file *ast.File) {
		if slices.Contains(imports(file), "github.com/miekg/dns") && filepath.Base(path) != "wire.go" {
			t.Errorf("%s imports miekg/dns: only wire.go does, so that another packet library is one file's change", path)
		}
	})
}

// The planner is a function of its world: what it may not import, and which
// functions of what it may import it may not call.
func TestThePlannerIsPure(t *testing.T) {
	t.Parallel()
	may := []string{"fmt", "sort", "slices", "maps", "strings", "time", "cmp", "strconv", module + "/jobspecs", module + "/runtime", module + "/volumes"}
	never := []string{
		"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick",
		"fmt.Print", "fmt.Printf", "fmt.Println", "fmt.Fprint", "fmt.Fprintf", "fmt.Fprintln",
	}
	sources(t, "daemon/planner", func(path string, file *ast.File) {
		for _, i := range imports(file) {
			if !slices.Contains(may, i) {
				t.Errorf("%s imports %s: the planner has no I/O, clock, randomness or log", path, i)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", path)
			case *ast.SelectorExpr:
				pkg, ok := n.X.(*ast.Ident)
				if name := fmt.Sprintf("%v.%s", pkg, n.Sel.Name); ok && slices.Contains(never, name) {
					t.Errorf("%s uses %s: time comes in as World.Now, and what is decided goes out as a Plan", path, name)
				}
			}
			return true
		})
	})
}

func TestNamesOfPackages(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if p.name() == "" {
			t.Errorf("there are Go files in the root: %v", p.GoFiles)
		}
		for _, part := range strings.Split(p.name(), "/") {
			if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "misc", "shared", "base"}, part) {
				t.Errorf("package %s is named after nothing: say what it is about", p.name())
			}
		}
	}
}
