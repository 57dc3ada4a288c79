package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// completer gives the words that may stand at a place.
type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// words completes fixed words.
func words(list ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) complete(cmd *cobra.Command, flag string, c completer) {
	_ = cmd.RegisterFlagCompletionFunc(flag, c) // fails for a flag that does not exist: a test completes each
}

// first completes the first argument, and nothing after it.
func first(c completer) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c(cmd, args, typed)
	}
}

// completeWithin is how long a shell waits for names.
const completeWithin = time.Second

// ask gives names from the daemon; without one there are none.
func (a *app) names(cmd *cobra.Command, names func(context.Context, *client.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	c, err := a.client()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := names(ctx, c)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return list, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeSets(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.names(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
		rows, err := c.Sets(ctx, a.namespaceOf(typed))
		var out []string
		for _, r := range rows {
			out = append(out, a.asTyped(r.Namespace, r.Name, typed))
		}
		return out, err
	})
}

func (a *app) completeTargets(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.names(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
		members, err := c.Members(ctx, a.namespaceOf(typed))
		var out []string
		for _, m := range members {
			if set := a.asTyped(m.Namespace, m.Set, typed); !slices.Contains(out, set) {
				out = append(out, set)
			}
			out = append(out, a.asTyped(m.Namespace, m.Name, typed))
		}
		return out, err
	})
}

// completeContainers gives the containers of the members that the first argument
// names.
func (a *app) completeContainers(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.names(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
		if len(args) == 0 {
			return nil, nil
		}
		members, _, err := a.members(ctx, c, args[:1])
		var out []string
		for _, m := range members {
			for _, c := range m.Containers {
				if word := c.Name + "\t" + c.Kind; !slices.Contains(out, word) {
					out = append(out, word)
				}
			}
		}
		return out, err
	})
}

// completeImages gives sets, then "CONTAINER=" of the set: which image is to
// follow nobody knows.
func (a *app) completeImages(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeSets(cmd, args, typed)
	}
	words, _ := a.completeContainers(cmd, args, typed)
	for i, w := range words {
		name, _, _ := strings.Cut(w, "\t")
		words[i] = name + "="
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (a *app) namespaceOf(typed string) string {
	if ns, _, ok := strings.Cut(typed, "/"); ok {
		return ns
	}
	return a.inNamespace()
}

func (a *app) asTyped(namespace, name, typed string) string {
	if strings.Contains(typed, "/") {
		return namespace + "/" + name
	}
	return name
}

func (a *app) completeRevisions(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.names(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
		if len(args) == 0 {
			return nil, nil
		}
		key, err := a.setArg("", args[0])
		if err != nil {
			return nil, err
		}
		rows, err := c.History(ctx, key)
		from, _, ranged := strings.Cut(typed, "..")
		var out []string
		for _, r := range rows {
			word := fmt.Sprint(r.Number)
			if ranged {
				word = from + ".." + word
			}
			out = append(out, word+"\t"+r.Name)
		}
		return out, err
	})
}

func (a *app) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.names(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
		rows, err := c.Sets(ctx, "")
		out := []string{jobspecs.DefaultNamespace}
		for _, r := range rows {
			if !slices.Contains(out, r.Namespace) {
				out = append(out, r.Namespace)
			}
		}
		return out, err
	})
}
