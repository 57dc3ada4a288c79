package docker

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/docker/docker/api/types/registry"

	"github.com/stsd/stsd/jobspecs"
)

// dockerHub is under which key Docker keeps the credentials of docker.io.
const dockerHub = "https://index.docker.io/v1/"

// login is who we are to a registry, and from where that is known.
type login struct {
	domain string // of the registry, "docker.io"
	auth   registry.AuthConfig
	from   string // "registry_auth", or a file; empty: nobody
	file   string // the Docker configuration
	wrong  error  // why the configuration gave no answer; nil: it gave one
}

// loginFor looks credentials up: the spec's, else those that the Docker
// configuration of the daemon's user has or has a helper for. Where the
// configuration is broken we are nobody, as with docker pull, and the refusal says
// why.
func loginFor(ctx context.Context, domain string, auth *jobspecs.RegistryAuth) (login, error) {
	l := login{domain: domain, file: filepath.Join(dockerConfigDir(), "config.json")}
	if auth != nil {
		l.auth = registry.AuthConfig{Username: auth.Username, Password: auth.Password, ServerAddress: registryKey(domain)}
		if auth.Username == TokenUser {
			l.auth = registry.AuthConfig{IdentityToken: auth.Password, ServerAddress: registryKey(domain)}
		}
		l.from = "registry_auth"
		return l, nil
	}
	conf, err := readConfig(l.file)
	if err != nil {
		l.wrong = err
		return l, nil
	}
	found, from, err := conf.find(ctx, domain)
	if ctx.Err() != nil {
		return l, ctx.Err()
	}
	l.wrong = err
	if found != (registry.AuthConfig{}) {
		l.auth, l.from = found, cmp.Or(from, l.file)
	}
	return l, nil
}

// header is what the engine gets; "" for nobody.
func (l *login) header() (string, error) {
	if l.from == "" {
		return "", nil
	}
	return registry.EncodeAuthConfig(l.auth)
}

// advice says what to do about a refusal.
func (l *login) advice() string {
	where := fmt.Sprintf("registry_auth in the container, or docker login%s as the user that runs stsd (%s)", l.host(), l.file)
	switch {
	case l.from != "" && l.auth.Username != "":
		return fmt.Sprintf("user %s of %s was refused; credentials come from %s", l.auth.Username, l.from, where)
	case l.from != "":
		return fmt.Sprintf("the token of %s was refused; credentials come from %s", l.from, where)
	case l.wrong != nil:
		return fmt.Sprintf("no credentials were sent, since %v; they come from %s", l.wrong, where)
	}
	return "no credentials were sent; they come from " + where
}

// host is what docker login is called with.
func (l *login) host() string {
	if l.domain == "docker.io" {
		return ""
	}
	return " " + l.domain
}

func dockerConfigDir() string {
	if dir := os.Getenv("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "/root/.docker" // a service has no HOME
	}
	return filepath.Join(home, ".docker")
}

// dockerConfig is the part of a Docker configuration that is about credentials.
type dockerConfig struct {
	Auths   map[string]registry.AuthConfig `json:"auths"`
	Store   string                         `json:"credsStore"`
	Helpers map[string]string              `json:"credHelpers"` // registry → helper
}

// readConfig is empty where there is no file.
func readConfig(path string) (dockerConfig, error) {
	var conf dockerConfig
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return conf, nil
	}
	if err != nil {
		return conf, err
	}
	if err := json.Unmarshal(text, &conf); err != nil {
		return dockerConfig{}, fmt.Errorf("%s is no JSON of a Docker configuration", path) // the error may quote a secret
	}
	return conf, nil
}

// find looks a registry up: its own helper, else the store of all, then the file.
// from is the helper that knew it.
func (c *dockerConfig) find(ctx context.Context, domain string) (_ registry.AuthConfig, from string, err error) {
	if helper := c.helper(domain); helper != "" {
		auth, err := askHelper(ctx, helper, registryKey(domain))
		if err != nil || auth != (registry.AuthConfig{}) {
			return auth, helperPrefix + helper, err
		}
	}
	return c.inFile(domain), "", nil
}

func (c *dockerConfig) helper(domain string) string {
	for key, helper := range c.Helpers {
		if sameRegistry(key, domain) {
			return helper
		}
	}
	return c.Store
}

func (c *dockerConfig) inFile(domain string) registry.AuthConfig {
	for key, auth := range c.Auths {
		if !sameRegistry(key, domain) {
			continue
		}
		if user, password, ok := userPassword(auth.Auth); ok {
			auth.Username, auth.Password = user, password
		}
		if auth.Username == "" && auth.IdentityToken == "" && auth.RegistryToken == "" {
			continue // what remains of a login that a helper keeps
		}
		auth.Auth, auth.ServerAddress = "", key
		return auth
	}
	return registry.AuthConfig{}
}

// registryKey is under which name Docker keeps a registry's credentials.
func registryKey(domain string) string {
	if domain == "docker.io" {
		return dockerHub
	}
	return domain
}

// sameRegistry tells whether a key of a configuration means the registry.
func sameRegistry(key, domain string) bool {
	return registryHost(key) == registryHost(registryKey(domain)) || key == domain
}

func registryHost(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	host, _, _ := strings.Cut(key, "/")
	return host
}

func userPassword(auth string) (user, password string, ok bool) {
	plain, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		return "", "", false
	}
	user, password, ok = strings.Cut(strings.TrimRight(string(plain), "\x00"), ":")
	return user, password, ok && user != ""
}
