package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newRootCmd(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "stsd",
		Short: "Schedules sets of stateful containers on a Docker host",
		Long: "stsd runs sets of stateful containers on a Docker host: members with stable names,\n" +
			"ordered start and update, a volume for each, DNS names and revisions to go back to.\n\n" +
			"    stsd daemon &                          serves\n" +
			"    stsd example redis > redis.hcl         a spec to begin with\n" +
			"    stsd apply redis.hcl                   runs it\n" +
			"    stsd ps                                shows its members",
		Version:           version,
		Args:              noSuchVerb,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.prepare() },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("stsd {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = false
	a.setFlags(root)
	root.AddCommand(
		newDaemonCmd(a), newApplyCmd(a), newPlanCmd(a), newDiffCmd(a), newValidateCmd(a), newFmtCmd(a),
		newLsCmd(a), newPsCmd(a), newStatusCmd(a), newExplainCmd(a),
		newScaleCmd(a), newSetCmd(a), newRolloutCmd(a),
		newRestartCmd(a), newStopCmd(a), newStartCmd(a), newReplaceCmd(a), newDeleteCmd(a),
		newLogsCmd(a), newExecCmd(a), newEventsCmd(a), newWaitCmd(a),
		newSecretCmd(a), newDNSCmd(a), newExampleCmd(a), newVersionCmd(a),
	)
	root.AddCommand(laterCmds()...)
	return root
}

// foreign are verbs of other programs and what they are called here.
var foreign = map[string]string{
	"up": "apply", "create": "apply", "run": "apply", "deploy": "apply", "edit": "apply",
	"down": "delete", "destroy": "delete", "rm": "delete", "remove": "delete", "kill": "delete", "purge": "delete",
	"get": "ps", "pods": "ps", "top-level": "ps",
	"list": "ls", "sets": "ls",
	"describe": "status", "inspect": "status", "show": "status",
	"log": "logs", "shell": "exec", "ssh": "exec",
	"undo": "rollout undo", "rollback": "rollout undo", "revert": "rollout undo", "history": "rollout history",
	"pause": "rollout pause", "resume": "rollout resume",
	"init": "example", "new": "example", "check": "validate", "lint": "validate", "format": "fmt",
	"serve": "daemon", "agent": "daemon", "server": "daemon",
}

// noSuchVerb answers for anything after "stsd" that is no verb.
func noSuchVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := &exitError{code: exitUsage, err: fmt.Errorf("no verb %q", strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath()+" "+args[0], "stsd ")))}
	if verb, ok := foreign[args[0]]; ok && cmd.Parent() == nil {
		err.next = []string{"stsd " + verb}
		return err
	}
	cmd.SuggestionsMinimumDistance = 2 // letters that may differ
	for _, s := range cmd.SuggestionsFor(args[0]) {
		err.next = append(err.next, cmd.CommandPath()+" "+s)
	}
	if err.next == nil {
		err.next = []string{cmd.CommandPath() + " --help"}
	}
	return err
}

// flagError makes wrong flags wrong usage, and knows those that do not exist on
// purpose.
func flagError(cmd *cobra.Command, err error) error {
	e := &exitError{code: exitUsage, err: err, next: []string{cmd.CommandPath() + " --help"}}
	if strings.Contains(err.Error(), "--prune") {
		e.err = fmt.Errorf("there is no --prune: a set goes only when it is named")
		e.next = []string{"stsd delete SET"}
	}
	return e
}

// args checks the number of arguments; most < 0 is any number.
func args(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		switch {
		case len(given) < least:
			return usageNext(fmt.Errorf("%s: missing %s", verbOf(cmd), what), cmd.UseLine())
		case most >= 0 && len(given) > most:
			return usageNext(fmt.Errorf("%s: %q is one argument too many", verbOf(cmd), given[most]), cmd.UseLine())
		}
		return nil
	}
}

// verbOf is the command without "stsd": "rollout undo".
func verbOf(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "stsd ") }

// group is a verb that only holds others.
func group(use, short string, cmds ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Args: noSuchVerb, RunE: func(cmd *cobra.Command, _ []string) error {
		return usageNext(fmt.Errorf("%s: what?", verbOf(cmd)), cmd.CommandPath()+" --help")
	}}
	g.AddCommand(cmds...)
	return g
}
