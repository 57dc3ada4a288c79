package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

func newSetCmd(a *app) *cobra.Command {
	return group("set", "Change the image of a set", newSetImageCmd(a))
}

func newSetImageCmd(a *app) *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use:               "image SET [CONTAINER=]IMAGE…",
		Short:             "Make a new revision of the stored spec with another image",
		Long:              "set image makes a new revision of the stored spec with another image, as kubectl does.\nIt is kept beside the spec; the next apply that differs drops it.",
		Example:           "  stsd set image web web:2\n  stsd set image web web=web:2",
		Args:              args(2, -1, "SET and IMAGE"),
		ValidArgsFunction: a.completeImages,
		RunE: func(cmd *cobra.Command, args []string) error {
			images, err := containerImages(args[1:])
			if err != nil {
				return err
			}
			return a.change(cmd, "set image", args[0], f, func(ctx context.Context, c *client.Client, key jobspecs.Key, w client.Write) (client.Result, error) {
				return c.SetImage(ctx, key, client.ImageRequest{Write: w, Images: images})
			})
		},
	}
	f.addAll(cmd)
	return cmd
}

// containerImages reads [CONTAINER=]IMAGE; no container is the only one.
func containerImages(pairs []string) (map[string]string, error) {
	images := map[string]string{}
	for _, p := range pairs {
		container, image, ok := strings.Cut(p, "=")
		if !ok {
			container, image = "", p
		}
		if image == "" || ok && !jobspecs.IsLabel(container) {
			return nil, usageNext(fmt.Errorf("set image: %q: want IMAGE or CONTAINER=IMAGE", p), "stsd set image web web=web:2")
		}
		if _, twice := images[container]; twice {
			return nil, usagef("set image: %q: that container has an image already", p)
		}
		images[container] = image
	}
	return images, nil
}
