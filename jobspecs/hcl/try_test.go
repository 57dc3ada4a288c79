package hcl

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stsd/stsd/jobspecs"
)

func TestTry(t *testing.T) {
	name := os.Getenv("TRY")
	if name == "" {
		t.Skip()
	}
	src, _ := os.ReadFile(name)
	f, ds := Parse([]jobspecs.Source{{Name: name, Text: src}}, jobspecs.Inputs{}, Options{ReadFile: os.ReadFile, LookupEnv: os.LookupEnv})
	WriteDiagnostics(os.Stdout, ds, false)
	if f == nil {
		return
	}
	for _, s := range f.Specs {
		b, _ := json.MarshalIndent(s, "", " ")
		fmt.Println(string(b))
		pod, err := Render(&s.Set, s.Template, sampleOf(&s.Set, 1))
		fmt.Println(err)
		b, _ = json.MarshalIndent(pod, "", " ")
		fmt.Println(string(b))
		for _, f := range pod.Containers[0].Files {
			fmt.Printf("%s", f.Content)
		}
	}
}
