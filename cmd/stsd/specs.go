package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
)

// specFlags are those of every verb that reads specs.
type specFlags struct {
	files    []string
	vars     []string
	varFiles []string
	images   []string
	pull     string
	strict   bool
}

func (s *specFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&s.files, "file", "f", nil, "file, folder or - (the same as an argument)")
	f.StringArrayVar(&s.vars, "var", nil, "NAME=VALUE of a variable (one dash works too)")
	f.StringArrayVar(&s.varFiles, "var-file", nil, "file of NAME = VALUE lines (one dash works too)")
	cmd.ValidArgsFunction = specNames
}

func (s *specFlags) addImages(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&s.images, "image", nil, "OLD=NEW: use image NEW where the spec says OLD")
	f.StringVar(&s.pull, "pull", "", "pull policy of every container: missing, always or never")
	f.BoolVar(&s.strict, "strict", false, "warnings are errors")
}

// specNames completes the names of specs.
func specNames(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"hcl"}, cobra.ShellCompDirectiveFilterFileExt
}

// specs are the FILE arguments, read.
type specs struct {
	scopes []client.Scope
	sets   []jobspecs.Spec
	found  []jobspecs.Diagnostic
	used   []string // keys of --image that some container has
	unset  []string // variables without a value here; the daemon may have one
}

// folderOf is one scope before it is read: its sources, and where its file()
// looks.
type folderOf struct {
	sources []jobspecs.Source
	dir     string
}

// readSpecs reads and checks what the arguments name. Diagnostics are in the
// answer, also those of errors; the error is one of reading files.
func (a *app) readSpecs(flags *specFlags, args []string) (specs, error) {
	var out specs
	images, err := imagePairs(flags.images)
	if err != nil {
		return out, err
	}
	folders, err := a.open(append(slices.Clone(flags.files), args...))
	if err != nil {
		return out, err
	}
	varFiles, err := readAll(flags.varFiles)
	if err != nil {
		return out, err
	}
	opt := hcl.Options{LookupEnv: a.lookupEnv, AllowMissing: true, Images: images, Pull: flags.pull}
	for i, f := range folders {
		out.read(f, forScope(flags.vars, folders, i), varFiles, opt)
	}
	out.found = append(out.found, a.outside(out.sets)...)
	for _, old := range slices.Sorted(maps.Keys(images)) {
		if !slices.Contains(out.used, old) && !hcl.HasErrors(out.found) {
			out.found = append(out.found, jobspecs.Diagnostic{Severity: "warning", Summary: fmt.Sprintf("--image %s=…: no container has that image", old)})
		}
	}
	return out, nil
}

func (s *specs) read(f folderOf, vars []string, varFiles []jobspecs.Source, opt hcl.Options) {
	opt.ReadFile = func(path string) ([]byte, error) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(f.dir, path)
		}
		return readRegular(path)
	}
	values, found := hcl.Vars(vars, varFiles, f.sources, opt.LookupEnv)
	s.found = append(s.found, found...)
	if hcl.HasErrors(found) {
		return
	}
	file, found := hcl.Parse(f.sources, jobspecs.Inputs{Vars: values}, opt)
	s.found = append(s.found, found...)
	if file == nil {
		return
	}
	s.scopes = append(s.scopes, client.Scope{Sources: f.sources, Inputs: file.Inputs})
	s.sets = append(s.sets, file.Specs...)
	s.used = append(s.used, file.Replaced...)
	for _, v := range file.Vars {
		if !v.Given && !v.HasDefault {
			s.unset = append(s.unset, v.Name)
		}
	}
}

// outside are the sets that say another namespace than -n.
func (a *app) outside(sets []jobspecs.Spec) []jobspecs.Diagnostic {
	var found []jobspecs.Diagnostic
	for _, s := range sets {
		if ns := s.Set.Namespace; s.Placed && a.namespace != "" && ns != a.namespace {
			found = append(found, jobspecs.Diagnostic{
				Severity: "error", File: s.File, Line: s.Line,
				Summary: fmt.Sprintf("%s is in namespace %s, not in %s of -n", s.Set.Name, ns, a.namespace),
			})
		}
	}
	return found
}

// check prints the diagnostics; its error is that the specs cannot be used.
func (a *app) check(s specs, strict bool) error {
	hcl.WriteDiagnostics(a.stderr, s.found, a.colour(a.stderr))
	errs, warnings := tally(s.found)
	switch {
	case errs > 0:
		return fmt.Errorf("%s; nothing was sent to the daemon", count(errs, "error"))
	case strict && warnings > 0:
		return fmt.Errorf("%s, and --strict; nothing was sent to the daemon", count(warnings, "warning"))
	}
	return nil
}

func tally(ds []jobspecs.Diagnostic) (errs, warnings int) {
	for _, d := range ds {
		if d.Severity == "error" {
			errs++
			continue
		}
		warnings++
	}
	return errs, warnings
}

func imagePairs(pairs []string) (map[string]string, error) {
	images := map[string]string{}
	for _, p := range pairs {
		old, new, ok := strings.Cut(p, "=")
		if !ok || old == "" || new == "" {
			return nil, usagef("--image %q: want OLD=NEW", p)
		}
		images[old] = new
	}
	return images, nil
}

// open reads the FILE arguments, one scope for each.
func (a *app) open(names []string) ([]folderOf, error) {
	if len(names) == 0 {
		return nil, usageNext(errors.New("no FILE given"), "stsd apply web.hcl", "stsd example web > web.hcl")
	}
	var out []folderOf
	for _, name := range names {
		f, err := a.openOne(name)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func (a *app) openOne(name string) (folderOf, error) {
	if name == "-" {
		text, err := io.ReadAll(a.stdin)
		if err != nil {
			return folderOf{}, fmt.Errorf("read standard input: %w", err)
		}
		return folderOf{sources: []jobspecs.Source{{Name: "stdin", Text: text}}, dir: "."}, nil
	}
	if isYAML(name) {
		return folderOf{}, notYet(name + ": Kubernetes YAML")
	}
	fi, err := os.Stat(name)
	if err != nil {
		return folderOf{}, readError(name, err)
	}
	files := []string{name}
	dir := filepath.Dir(name)
	if fi.IsDir() {
		dir = name
		if files, err = specFiles(name); err != nil {
			return folderOf{}, err
		}
	}
	sources, err := readAll(files)
	return folderOf{sources: sources, dir: dir}, err
}

func isYAML(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".yaml" || ext == ".yml"
}

// specFiles are the specs of a folder, by name.
func specFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, readError(dir, err)
	}
	var files []string
	yaml := false
	for _, e := range entries {
		yaml = yaml || isYAML(e.Name())
		if !e.IsDir() && filepath.Ext(e.Name()) == ".hcl" && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	if len(files) == 0 && yaml {
		return nil, notYet(dir + ": Kubernetes YAML")
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read %s: it holds no .hcl file", dir)
	}
	return files, nil
}

func readAll(names []string) ([]jobspecs.Source, error) {
	var out []jobspecs.Source
	for _, name := range names {
		text, err := readRegular(name)
		if err != nil {
			return nil, readError(name, err)
		}
		out = append(out, jobspecs.Source{Name: name, Text: text})
	}
	return out, nil
}

// readRegular reads a file that has an end: nobody may write to a pipe.
func readRegular(name string) ([]byte, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() && !fi.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is no regular file; - reads standard input")}
	}
	return os.ReadFile(name)
}

// readError drops the name that package os adds once more.
func readError(name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("read %s: %w", name, err)
}

var declaration = regexp.MustCompile(`(?m)^\s*variable\s+"?([A-Za-z_][A-Za-z0-9_-]*)`)

// forScope leaves out the assignments of variables that only other scopes
// declare; one that no scope declares is an error in each.
func forScope(vars []string, folders []folderOf, i int) []string {
	if len(folders) == 1 {
		return vars
	}
	var out []string
	for _, v := range vars {
		name, _, _ := strings.Cut(v, "=")
		elsewhere := slices.ContainsFunc(folders, func(f folderOf) bool { return declares(f, name) })
		if declares(folders[i], name) || !elsewhere {
			out = append(out, v)
		}
	}
	return out
}

func declares(f folderOf, name string) bool {
	for _, s := range f.sources {
		for _, m := range declaration.FindAllSubmatch(s.Text, -1) {
			if bytes.Equal(m[1], []byte(name)) {
				return true
			}
		}
	}
	return false
}

// registries are those that the images come from, sorted. An image that depends
// on the member is not among them.
func (s *specs) registries() []string {
	seen := map[string]bool{}
	for _, sp := range s.sets {
		for _, i := range sp.Images {
			seen[jobspecs.Registry(i.Ref)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// keys are the sets of the specs, in source order.
func (s *specs) keys() []jobspecs.Key {
	var out []jobspecs.Key
	for _, sp := range s.sets {
		out = append(out, sp.Set.Key())
	}
	return out
}
