package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/jobspecs/examples"
)

func newExampleCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "example [NAME]",
		Short:             "Print a spec to begin with; without a name, list them",
		Example:           "  stsd example redis > redis.hcl",
		Args:              args(0, 1, "NAME"),
		ValidArgsFunction: words(examples.Names()...),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.show(view{doc: examples.Names(), names: examples.Names(), table: linesOf(examples.Names()...)})
			}
			text, ok := examples.Get(args[0])
			if !ok {
				return noExample(args[0])
			}
			_, err := a.stdout.Write(text)
			return err
		},
	}
}

func noExample(name string) error {
	e := &exitError{code: exitUsage, err: fmt.Errorf("no example %q", name)}
	for _, n := range examples.Names() {
		e.next = append(e.next, "stsd example "+n)
	}
	return e
}
