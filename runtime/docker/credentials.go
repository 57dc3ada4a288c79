package docker

import (
	"context"

	"github.com/stsd/stsd/jobspecs"
)

// TokenUser is the user name of credentials whose password is an identity token,
// as Docker's credential helpers write it.
const TokenUser = "<token>"

// Credentials are those that the Docker configuration of this user has for a
// registry (jobspecs.Registry): in its file, its credential store or a helper. nil:
// it has none.
func Credentials(ctx context.Context, registry string) (*jobspecs.RegistryAuth, error) {
	l, err := loginFor(ctx, registry, nil)
	switch {
	case err != nil:
		return nil, err
	case l.wrong != nil:
		return nil, l.wrong
	case l.auth.IdentityToken != "":
		return &jobspecs.RegistryAuth{Username: TokenUser, Password: l.auth.IdentityToken}, nil
	case l.auth.Username == "":
		return nil, nil
	}
	return &jobspecs.RegistryAuth{Username: l.auth.Username, Password: l.auth.Password}, nil
}
