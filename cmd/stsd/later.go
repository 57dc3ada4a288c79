package main

import "github.com/spf13/cobra"

// later are verbs that are named and not built yet, each with what to type
// meanwhile.
var later = map[string][]string{
	"cp":           {"stsd exec MEMBER -- cat FILE > FILE"},
	"port-forward": nil,
	"attach":       {"stsd logs -f MEMBER"},
	"top":          {"docker stats"},
	"volume":       {"stsd status SET, which lists its volumes"},
	"snapshot":     nil,
	"convert":      {"stsd example web"},
	"export":       nil,
	"config":       nil,
	"doctor":       {"stsd version"},
	"context":      {"export STSD_HOST=unix:///path/to/stsd.sock"},
}

func laterCmds() []*cobra.Command {
	var cmds []*cobra.Command
	for verb, next := range later {
		cmds = append(cmds, &cobra.Command{
			Use:                verb,
			Hidden:             true,
			DisableFlagParsing: true,
			RunE:               func(*cobra.Command, []string) error { return notYet(verb, next...) },
		})
	}
	return cmds
}
