package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
)

func newValidateCmd(a *app) *cobra.Command {
	var f specFlags
	cmd := &cobra.Command{
		Use:   "validate FILE…",
		Short: "Check specs and report every problem; needs no daemon",
		RunE:  func(_ *cobra.Command, args []string) error { return a.validate(&f, args) },
	}
	f.add(cmd)
	f.addImages(cmd)
	return cmd
}

func (a *app) validate(f *specFlags, args []string) error {
	s, err := a.readSpecs(f, args)
	if err != nil {
		return err
	}
	for _, name := range s.unset {
		s.found = append(s.found, jobspecs.Diagnostic{
			Severity: "warning", Summary: fmt.Sprintf("variable %q has no value", name),
			Detail: fmt.Sprintf("An apply of a new set needs -var %s=…; a set that is stored keeps the value it has.", name),
		})
	}
	err = a.show(view{doc: orEmpty(s.found), table: func(w io.Writer) {
		a.diagnose(s.found)
		if !hcl.HasErrors(s.found) {
			fmt.Fprintln(w, "valid: "+count(len(s.sets), "set")+unchecked(s.unset))
		}
	}})
	if errs, warnings := tally(s.found); err == nil && (errs > 0 || f.strict && warnings > 0) {
		return quietly(exitFailure)
	}
	return err
}

// unchecked names the variables without a value: what depends on them was not
// checked.
func unchecked(unset []string) string {
	if len(unset) == 0 {
		return ""
	}
	return "; what depends on " + strings.Join(unset, ", ") + " was not checked"
}

// diagnose prints diagnostics for people.
func (a *app) diagnose(found []jobspecs.Diagnostic) {
	hcl.WriteDiagnostics(a.stderr, found, a.colour(a.stderr))
}
