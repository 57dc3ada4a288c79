package docker

import (
	"reflect"
	"testing"

	"github.com/docker/docker/api/types/registry"

	"github.com/stsd/stsd/jobspecs"
)

func TestACredentialThatIsATokenIsSentAsOne(t *testing.T) {
	for name, tc := range map[string]struct {
		given jobspecs.RegistryAuth
		want  registry.AuthConfig
	}{
		"a password": {jobspecs.RegistryAuth{Username: "ci", Password: "p"}, registry.AuthConfig{Username: "ci", Password: "p", ServerAddress: "ghcr.io"}},
		"a token":    {jobspecs.RegistryAuth{Username: TokenUser, Password: "t"}, registry.AuthConfig{IdentityToken: "t", ServerAddress: "ghcr.io"}},
	} {
		l, err := loginFor(t.Context(), "ghcr.io", &tc.given)
		if err != nil || !reflect.DeepEqual(l.auth, tc.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, l.auth, err, tc.want)
		}
	}
}
