package hcl

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/examples"
)

// FuzzParse holds for any text: nothing panics or takes long, few findings, the
// same reading twice, what is accepted renders for every member, and a formatted file is
// formatted and means the same.
func FuzzParse(f *testing.F) {
	for _, name := range examples.Names() {
		text, _ := examples.Get(name)
		f.Add(text)
	}
	for _, pattern := range []string{"testdata/*.hcl", "testdata/found/*.hcl"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	for _, expr := range []string{
		`[for a in range(1000) : [for b in range(1000) : [for c in set.members : a]]]`,
		`setproduct(range(1024), range(1024), range(1024))`,
		`join(",", set.peers[*].fqdn[*])`,
		`"%{ for m in set.members }${m.name}%{ endfor }"`,
		`format("%999999999d%[1]s", "1e99999999" * 1)`,
		`try([for x in range(1024) : regexall("()()()", jsonencode(range(1024)))], 1)`,
		`yamldecode("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]")`,
		`yamldecode("a: &a { x: 1 }\nb:\n  <<: [*a, *a]\n  ? y\n")`,
		`jsondecode("[[1e99], {\"a\": [0,0]}]")`,
		`csvdecode("a,b\n1,2\n")`,
		`regexall("x*y|x", "xxxxxxxx")`,
		`regexreplace("xxxx", "(x*y)?", "$1$1")`,
		`yamlencode([[["a\nb\n"]]])`,
		`self.ordinal == 0 ? [] : [for x in range(1024) : "${x}"]`,
	} {
		f.Add([]byte(web("args = [jsonencode(" + expr + ")]")))
	}
	f.Add([]byte(login("variable \"p\" {\ndefault = \"x\"\n}\n", `"${self.name}${var.p}"`)))
	f.Add([]byte("#\r\r"))
	f.Fuzz(func(t *testing.T, text []byte) {
		source := []jobspecs.Source{{Name: "fuzz.hcl", Text: text}}
		start := processorTime(t)
		file, ds := Parse(source, jobspecs.Inputs{}, Options{})
		if took := processorTime(t) - start; took > time.Minute {
			t.Errorf("took %s", took)
		}
		if len(ds) > maxFindings+1 {
			t.Errorf("%d findings", len(ds))
		}
		if (file == nil) != HasErrors(ds) {
			t.Errorf("file %v with findings %v", file, ds)
		}
		for _, d := range ds {
			if d.Detail != "" && bytes.Contains([]byte(d.Summary), []byte("stsd itself failed")) {
				t.Errorf("%s\n%s", d.Summary, d.Detail)
			}
		}
		formatted, wrong := Format("fuzz.hcl", text)
		if HasErrors(wrong) {
			return
		}
		if again, _ := Format("fuzz.hcl", formatted); !bytes.Equal(again, formatted) {
			t.Errorf("formatted twice:\n%q\n%q", formatted, again)
		}
		if file == nil {
			return
		}
		same, ds := Parse([]jobspecs.Source{{Name: "fuzz.hcl", Text: formatted}}, file.Inputs, Options{})
		if same == nil {
			t.Fatalf("formatting broke it: %s\n%s", reportOf(ds), formatted)
		}
		for i, spec := range file.Specs {
			if !spec.Template.Equal(same.Specs[i].Template) {
				t.Errorf("formatting changed the template:\n%s\n%s", spec.Template, same.Specs[i].Template)
			}
			if _, err := Render(&spec.Set, spec.Template, sampleOf(&spec.Set, 0, nil)); err != nil {
				t.Errorf("accepted, but: %v", err)
			}
		}
	})
}
