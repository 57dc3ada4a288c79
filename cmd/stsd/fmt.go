package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
)

type fmtFlags struct{ write, check bool }

func newFmtCmd(a *app) *cobra.Command {
	var f fmtFlags
	cmd := &cobra.Command{
		Use:   "fmt FILE…",
		Short: "Print specs in the canonical layout",
		Long:  "fmt prints specs in the canonical layout. A FILE is a .hcl file, a folder or - for standard input.",
		RunE:  func(_ *cobra.Command, args []string) error { return a.fmt(f, args) },
	}
	cmd.Flags().BoolVarP(&f.write, "write", "w", false, "write to the files and print the names of those that changed")
	cmd.Flags().BoolVar(&f.check, "check", false, "print the names of files that are not so and exit 2")
	cmd.ValidArgsFunction = specNames
	return cmd
}

func (a *app) fmt(f fmtFlags, args []string) error {
	if len(args) == 0 {
		return usageNext(fmt.Errorf("fmt: missing FILE"), "stsd fmt -w web.hcl", "stsd fmt - < web.hcl")
	}
	if f.write && f.check {
		return usagef("fmt: -w and --check exclude each other")
	}
	differ, broken := false, 0
	for _, arg := range args {
		folder, err := a.openOne(arg)
		if err != nil {
			return err
		}
		if f.write && arg == "-" {
			return usagef("fmt -w: standard input cannot be written")
		}
		for _, s := range folder.sources {
			text, found := hcl.Format(s.Name, s.Text)
			a.diagnose(found)
			if hcl.HasErrors(found) {
				broken++
				continue
			}
			changed := !bytes.Equal(text, s.Text)
			differ = differ || changed
			if err := a.formatted(f, s, text, changed); err != nil {
				return err
			}
		}
	}
	switch {
	case broken > 0:
		return fmt.Errorf("fmt: %s cannot be read", count(broken, "file"))
	case f.check && differ:
		return quietly(exitDiffers)
	}
	return nil
}

func (a *app) formatted(f fmtFlags, s jobspecs.Source, text []byte, changed bool) error {
	switch {
	case !f.write && !f.check:
		_, err := a.stdout.Write(text)
		return err
	case !changed:
		return nil
	}
	fmt.Fprintln(a.stdout, s.Name)
	if f.check {
		return nil
	}
	fi, err := os.Stat(s.Name)
	if err != nil {
		return readError(s.Name, err)
	}
	return os.WriteFile(s.Name, text, fi.Mode().Perm())
}
