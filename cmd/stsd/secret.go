package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

func newSecretCmd(a *app) *cobra.Command {
	return group("secret", "Generated secrets: list, show, remove; never their values", newSecretLsCmd(a), newSecretShowCmd(a), newSecretRmCmd(a))
}

func newSecretLsCmd(a *app) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List generated secrets",
		Args:  args(0, 0, "nothing"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			namespace := a.inNamespace()
			if all {
				namespace = ""
			}
			rows, err := c.Secrets(cmd.Context(), namespace)
			if err != nil {
				return err
			}
			return a.show(a.secretsView(orEmpty(rows), all))
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

func (a *app) secretsView(rows []client.Secret, all bool) view {
	v := view{doc: rows, names: []string{}}
	t := table{}
	head := []string{"NAME", "FORMAT", "LENGTH", "CREATED", "USED BY"}
	if all {
		head = append([]string{"NAMESPACE"}, head...)
	}
	t.row(head...)
	for _, r := range rows {
		v.names = append(v.names, nameOf(r.Namespace, r.Name))
		row := []string{r.Name, r.Format, fmt.Sprint(r.Length), a.age(&r.Created), orDash(strings.Join(r.UsedBy, ","))}
		if all {
			row = append([]string{r.Namespace}, row...)
		}
		t.row(row...)
	}
	v.table = a.tableOr(t, len(rows), "no secrets")
	return v
}

func newSecretShowCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show what is known of a secret, but for its value",
		Args:              args(1, 1, "NAME"),
		ValidArgsFunction: first(a.completeSecrets),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			row, err := a.secretNamed(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return a.show(secretView(row))
		},
	}
}

func secretView(r client.Secret) view {
	return view{doc: r, names: []string{nameOf(r.Namespace, r.Name)}, table: func(w io.Writer) {
		t := table{}
		t.row("name", r.Name)
		t.row("namespace", r.Namespace)
		t.row("format", r.Format)
		t.row("length", fmt.Sprint(r.Length))
		t.row("created", r.Created.Local().Format("2006-01-02 15:04:05"))
		t.row("used by", orDash(strings.Join(r.UsedBy, ", ")))
		t.row("value", "(sensitive)")
		t.write(w)
	}}
}

// secretArg reads NAME or NS/NAME.
func (a *app) secretArg(arg string) (namespace, name string, err error) {
	namespace, name, placed := strings.Cut(arg, "/")
	if !placed {
		namespace, name = a.inNamespace(), arg
	}
	switch {
	case name == "" || !jobspecs.IsLabel(namespace):
		return "", "", usagef("secret %q: want NAME or NAMESPACE/NAME", arg)
	case placed && a.namespace != "" && a.namespace != namespace:
		return "", "", usagef("secret %s is not in namespace %s of -n", arg, a.namespace)
	}
	return namespace, name, nil
}

func (a *app) secretNamed(ctx context.Context, c *client.Client, arg string) (client.Secret, error) {
	namespace, name, err := a.secretArg(arg)
	if err != nil {
		return client.Secret{}, err
	}
	rows, err := c.Secrets(ctx, namespace)
	if err != nil {
		return client.Secret{}, err
	}
	i := slices.IndexFunc(rows, func(r client.Secret) bool { return r.Name == name })
	if i < 0 {
		return client.Secret{}, &exitError{code: exitFailure, err: fmt.Errorf("no secret %s in namespace %s", name, namespace), next: []string{"stsd secret ls -A"}}
	}
	return rows[i], nil
}

func newSecretRmCmd(a *app) *cobra.Command {
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "rm NAME…",
		Short: "Forget a generated secret; the next apply makes another one",
		Long: "rm forgets secrets. A set that uses one goes on with the value that it has until its next apply, which makes\n" +
			"another one and replaces its members; rm asks for the secret's name then, or for --yes.",
		Args:              args(1, -1, "NAME"),
		ValidArgsFunction: a.completeSecrets,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.removeSecrets(cmd.Context(), client.Write{DryRun: dryRun, Yes: yes}, args)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done and write nothing")
	cmd.Flags().BoolVar(&yes, "yes", false, "remove one that a set uses, too")
	return cmd
}

func (a *app) removeSecrets(ctx context.Context, w client.Write, names []string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	results, lines := []client.SecretResult{}, []string{}
	var failed error
	for _, arg := range names {
		r, err := a.removeSecret(ctx, c, w, arg)
		if err != nil {
			failed = err
			break
		}
		results, lines = append(results, r), append(lines, r.Message)
	}
	if len(results) > 0 {
		if err := a.show(view{doc: results, table: linesOf(lines...)}); err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

func (a *app) removeSecret(ctx context.Context, c *client.Client, w client.Write, arg string) (client.SecretResult, error) {
	namespace, name, err := a.secretArg(arg)
	if err != nil {
		return client.SecretResult{}, err
	}
	return confirmedThing(ctx, a, "secret", w, func(ctx context.Context, w client.Write) (client.SecretResult, error) {
		return c.RemoveSecret(ctx, namespace, name, client.SecretRequest{Write: w})
	})
}

func (a *app) completeSecrets(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	return a.names(cmd, func(ctx context.Context, c *client.Client) ([]string, error) {
		rows, err := c.Secrets(ctx, a.namespaceOf(typed))
		var out []string
		for _, r := range rows {
			out = append(out, a.asTyped(r.Namespace, r.Name, typed))
		}
		return out, err
	})
}
