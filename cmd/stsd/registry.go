package main

import (
	"context"
	"fmt"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime/docker"
)

// registryAuths are the credentials that this client's Docker configuration has
// for registries. A registry without any is said and left out.
func (a *app) registryAuths(ctx context.Context, registries []string) (map[string]jobspecs.RegistryAuth, error) {
	out := map[string]jobspecs.RegistryAuth{}
	for _, r := range registries {
		auth, err := docker.Credentials(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("credentials for %s: %w", r, err)
		}
		if auth == nil {
			a.say("no credentials for %s: docker login %s", r, r)
			continue
		}
		out[r] = *auth
	}
	return out, nil
}
