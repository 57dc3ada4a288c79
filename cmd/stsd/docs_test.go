package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// docs/cli.md is made from the commands: go test ./cmd/stsd -update
func TestTheReferenceIsUpToDate(t *testing.T) {
	t.Parallel()
	golden(t, filepath.Join("..", "..", "docs", "cli.md"), reference())
}

// rootOnly are defaults that differ for other users; the reference has root's.
var rootOnly = map[string]string{"data-dir": "/var/lib/stsd", "socket": defaultSocket}

func reference() string {
	root := newRootCmd(newApp(nil, nil, nil, nil))
	root.InitDefaultHelpCmd()
	var b strings.Builder
	b.WriteString("# stsd: the command line\n\nMade from the commands themselves by a test; do not edit.\n\n")
	b.WriteString("A TARGET is a set (`redis`), a member (`redis-1`), a list (`redis-0,2`), a range (`redis-[0-2]`), or one of these in another namespace (`NS/redis-1`).\n\n")
	b.WriteString("## Exit codes\n\n" + exitTable() + "\n## Flags of every verb\n\n")
	listFlagsOf(&b, root.PersistentFlags())
	for _, cmd := range root.Commands() {
		writeCommand(&b, cmd)
	}
	return b.String()
}

func writeCommand(b *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return
	}
	fmt.Fprintf(b, "## %s\n\n%s.\n\n", strings.TrimPrefix(cmd.CommandPath(), "stsd "), strings.TrimSuffix(cmd.Short, "."))
	if cmd.Runnable() && !cmd.HasSubCommands() {
		fmt.Fprintf(b, "    %s\n\n", cmd.UseLine())
	}
	if cmd.Long != "" {
		fmt.Fprintf(b, "%s\n\n", strings.ReplaceAll(cmd.Long, "\n  ", "\n\n    "))
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "Examples:\n\n%s\n\n", regexp.MustCompile(`(?m)^  `).ReplaceAllString(cmd.Example, "    "))
	}
	listFlagsOf(b, cmd.LocalNonPersistentFlags())
	for _, sub := range cmd.Commands() {
		writeCommand(b, sub)
	}
}

func listFlagsOf(b *strings.Builder, flags *pflag.FlagSet) {
	var rows []string
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		def := f.DefValue
		if fixed, ok := rootOnly[f.Name]; ok {
			def = fixed
		}
		if slices.Contains([]string{"", "false", "[]", "0s", "0", "-1"}, def) {
			def = ""
		} else {
			def = " (default `" + def + "`)"
		}
		rows = append(rows, fmt.Sprintf("- %s: %s%s", name, f.Usage, def))
	})
	if rows != nil {
		b.WriteString(strings.Join(rows, "\n") + "\n\n")
	}
}

// exitTable is the list of constants in exit.go, with their comments.
func exitTable() string {
	src, err := os.ReadFile("exit.go")
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^\texit\w+\s+= (\d+)\s+// (.*)$`).FindAllSubmatch(src, -1) {
		fmt.Fprintf(&b, "- %s: %s\n", m[1], m[2])
	}
	return b.String()
}

// Every verb of the contract is there, and every one is documented.
func TestEveryVerbIsThere(t *testing.T) {
	t.Parallel()
	root := newRootCmd(newApp(nil, nil, nil, nil))
	verbs := "daemon,apply,plan,diff,validate,fmt,ls,ps,status,explain,scale,rollout status,rollout history,rollout undo,rollout pause,rollout resume,rollout restart," +
		"set image,restart,stop,start,replace,delete,logs,exec,cp,port-forward,attach,events,top,wait,volume,snapshot,dns,convert,export,config,secret,example,doctor,version,context"
	for verb := range strings.SplitSeq(verbs, ",") {
		cmd, rest, err := root.Find(strings.Fields(verb))
		if err != nil || len(rest) > 0 || cmd == root {
			t.Errorf("no verb %s: %v", verb, err)
			continue
		}
		if !cmd.Hidden && cmd.Short == "" {
			t.Errorf("%s says nothing about itself", verb)
		}
	}
	for old, verb := range foreign {
		if _, rest, err := root.Find(strings.Fields(verb)); err != nil || len(rest) > 0 {
			t.Errorf("%s is suggested for %s and does not exist", verb, old)
		}
	}
}
