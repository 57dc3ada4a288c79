package hcl

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/stsd/stsd/jobspecs"
)

// Options are what a reader of specs may do beside the source and Inputs. The
// zero value is the daemon's: it reads nothing but what was sent.
type Options struct {
	// ReadFile reads a file that the spec names, relative to the spec's file. nil:
	// only Inputs.Files are known.
	ReadFile func(path string) ([]byte, error)
	// LookupEnv answers env(). nil: only Inputs.Env is known.
	LookupEnv func(string) (string, bool)
	// AllowMissing makes a variable without a value unknown instead of an error.
	// Templates made so are for looking at names only.
	AllowMissing bool
	// Draft leaves out to render members, and what would be found by it: the File is
	// for looking at names only.
	Draft bool
	// Images puts NEW wherever an image is OLD. On top of Inputs.Images.
	Images map[string]string
	// Pull replaces every container's pull policy. Before Inputs.Pull.
	Pull string
	// Others are the sets that sets.NAME may name in a namespace, those of the
	// sources included. nil: they are not known here, and sets has no values yet.
	Others func(namespace string) map[string]Other
}

// A File is what one scope says.
type File struct {
	Specs  []jobspecs.Spec
	Inputs jobspecs.Inputs // everything that was read: with it the same Parse succeeds without Options
	Vars   []Variable      // declared, sorted by name
	// Secrets are those declared, sorted by name. Each is made for the namespace of
	// every set of Specs.
	Secrets []Secret
	// Replaced are the keys of Images that some image was.
	Replaced []string
}

// Parse reads the files of one scope. The File is nil when an error was found.
// The same sources and Inputs give the same result on any machine.
func Parse(sources []jobspecs.Source, in jobspecs.Inputs, opt Options) (file *File, found []jobspecs.Diagnostic) {
	r := &report{}
	defer func() { // whatever a user sends, the daemon lives on
		if p := recover(); p != nil {
			file = nil
			found = append(r.done(), jobspecs.Diagnostic{
				Severity: severityError, Summary: "stsd itself failed on this spec; please report it",
				Detail: Scrub(fmt.Sprintf("%v\n%s", p, debug.Stack()), Disguises(r.unsaid)),
			})
		}
	}()
	bodies := r.parse(sources)
	if bodies == nil {
		return nil, r.done()
	}
	file = r.evaluate(bodies, sources, in, opt)
	if r.failed() {
		return nil, r.done()
	}
	return file, r.done()
}

// parse gives the syntax trees; nil when there is something that would only
// cause further findings.
func (r *report) parse(sources []jobspecs.Source) []*hclsyntax.Body {
	var bodies []*hclsyntax.Body
	if r.meter == nil {
		r.meter = newMeter(readWork)
	}
	sound := true
	for _, s := range sources {
		text, ok := r.open(s)
		if !ok {
			sound = false
			continue
		}
		f, ds := hclsyntax.ParseConfig(text, s.Name, hcl2.InitialPos)
		r.hcl(ds)
		if ds.HasErrors() {
			sound = false
			continue
		}
		body := f.Body.(*hclsyntax.Body)
		instrument(body, r.meter)
		bodies = append(bodies, body)
	}
	if !sound {
		return nil
	}
	return append(bodies, &hclsyntax.Body{})
}

// evaluate reads the blocks in the order in which they depend on each other.
func (r *report) evaluate(bodies []*hclsyntax.Body, sources []jobspecs.Source, in jobspecs.Inputs, opt Options) *File {
	f := &File{}
	s := r.scope(in, opt, &f.Inputs)
	s.overrides()
	blocks := s.topLevel(bodies)
	for _, b := range blocks["variable"] {
		s.declareVariable(b)
	}
	s.assign()
	for _, b := range blocks["secret"] {
		s.declareSecret(b)
	}
	for _, b := range blocks["locals"] {
		s.declare(b)
	}
	s.tryLocals([]*sample{nil})
	f.Specs = s.sets(blocks["statefulset"])
	if len(blocks["statefulset"]) == 0 && !r.failed() {
		s.noSet(sources)
	}
	for _, name := range sortedKeys(s.vars) {
		f.Vars = append(f.Vars, s.vars[name].Variable)
	}
	for _, name := range sortedKeys(s.secrets) {
		f.Secrets = append(f.Secrets, s.secrets[name].Secret)
	}
	s.unusedSecrets(f.Specs)
	f.Replaced = sortedKeys(s.replaced)
	return f
}

func (r *report) scope(in jobspecs.Inputs, opt Options, read *jobspecs.Inputs) *scope {
	s := &scope{report: r, opt: opt, in: in, read: read, vars: map[string]*variable{}, locals: map[string]*local{}, secrets: map[string]*secret{}, values: cty.EmptyObjectVal}
	s.funcs = functions(s, nil, r.meter)
	return s
}

func (s *scope) noSet(sources []jobspecs.Source) {
	at := hcl2.Range{}
	if len(sources) > 0 {
		at.Filename = sources[0].Name
	}
	s.error(at, "no statefulset block", "A spec has one at least: statefulset \"web\" { … }. `stsd example web` prints a whole one.")
}

// overrides takes --image and --pull from Options or, replayed, from Inputs.
func (s *scope) overrides() {
	s.replaced = map[string]bool{}
	images := maps.Clone(s.in.Images)
	if images == nil {
		images = map[string]string{}
	}
	maps.Copy(images, s.opt.Images)
	if len(images) > 0 {
		s.read.Images = images
	}
	s.read.Pull = s.in.Pull
	if s.opt.Pull != "" {
		s.read.Pull = s.opt.Pull
	}
	if pull := s.read.Pull; pull != "" {
		policy, _ := containerSchema.attr("pull")
		if _, err := policy.kind.read(cty.StringVal(pull)); err != nil {
			s.error(hcl2.Range{}, "pull policy: "+err.Error(), "")
		}
	}
	for _, old := range sortedKeys(images) {
		if err := checkImage(images[old]); err != nil {
			s.error(hcl2.Range{}, fmt.Sprintf("replacing image %s: %s", old, err), "")
		}
	}
}

// topLevel sorts the blocks of all files by type and refuses what has no place.
func (s *scope) topLevel(bodies []*hclsyntax.Body) map[string][]*hclsyntax.Block {
	blocks := map[string][]*hclsyntax.Block{}
	for _, body := range bodies {
		for _, a := range sortedAttributes(body) {
			s.unknownAttribute(a, fileSchema)
		}
		for _, b := range body.Blocks {
			if known := fileSchema.block(b.Type); known == nil || known.later {
				s.unknownBlock(b, fileSchema)
				continue
			}
			blocks[b.Type] = append(blocks[b.Type], b)
		}
	}
	return blocks
}

func (s *scope) declareVariable(b *hclsyntax.Block) {
	v := s.declaration(b)
	if v == nil {
		return
	}
	if old, ok := s.vars[v.Name]; ok {
		s.error(v.at, fmt.Sprintf("variable %q is declared twice", v.Name), fmt.Sprintf("The other one is at %s:%d.", old.at.Filename, old.at.Start.Line))
		return
	}
	s.vars[v.Name] = v
}

// sets reads the statefulset blocks; those that clash with one another are said
// at the later one.
func (s *scope) sets(blocks []*hclsyntax.Block) []jobspecs.Spec {
	var specs []jobspecs.Spec
	for _, b := range blocks {
		if !s.labelled(b, setSchema) {
			continue
		}
		spec := s.statefulset(b)
		for _, other := range specs {
			s.together(b, &other, &spec)
		}
		specs = append(specs, spec)
		s.startCircle(b, specs)
	}
	return specs
}

// startCircle says at the set that closes a circle of start_after what it is.
func (s *scope) startCircle(b *hclsyntax.Block, specs []jobspecs.Spec) {
	after := map[string][]string{}
	last := &specs[len(specs)-1].Set
	for i := range specs {
		if set := &specs[i].Set; set.Namespace == last.Namespace {
			after[set.Name] = slices.DeleteFunc(slices.Clone(set.StartAfter), func(n string) bool { return n == set.Name }) // said already
		}
	}
	if circle := jobspecs.StartCircle(after); slices.Contains(circle, last.Name) {
		s.error(b.DefRange(), "these sets wait for each other to start", strings.Join(circle, " → ")+" (start_after)")
	}
}

func (s *scope) together(b *hclsyntax.Block, first, second *jobspecs.Spec) {
	if first.Set.Key() == second.Set.Key() {
		s.error(b.DefRange(), fmt.Sprintf("there are two sets %s", first.Set.Key()), fmt.Sprintf("The other one is at %s:%d.", first.File, first.Line))
		return
	}
	if err := jobspecs.Clash(&second.Set, &first.Set); err != nil {
		s.error(b.DefRange(), "these sets cannot live side by side", err.Error()+fmt.Sprintf(" (%s:%d).", first.File, first.Line))
	}
}
