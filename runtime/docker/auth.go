package docker

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"
	"github.com/docker/docker/api/types/registry"
)

// dockerHub is under which key Docker keeps the credentials of docker.io.
const dockerHub = "https://index.docker.io/v1/"

// registryAuth is the header with the credentials for ref's registry, "" where
// there are none. Only the auths of the file are read; helpers are not asked.
func registryAuth(ref string) string {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(dockerConfigDir(), "config.json"))
	if err != nil {
		return ""
	}
	auth, ok := findAuth(text, reference.Domain(named))
	if !ok {
		return ""
	}
	header, err := registry.EncodeAuthConfig(auth)
	if err != nil {
		return ""
	}
	return header
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

// findAuth looks a registry up in the text of a Docker configuration.
func findAuth(text []byte, domain string) (_ registry.AuthConfig, ok bool) {
	var conf struct {
		Auths map[string]registry.AuthConfig `json:"auths"`
	}
	if err := json.Unmarshal(text, &conf); err != nil {
		return registry.AuthConfig{}, false
	}
	if domain == "docker.io" {
		domain = dockerHub
	}
	for key, auth := range conf.Auths {
		if registryHost(key) != registryHost(domain) {
			continue
		}
		if user, password, ok := userPassword(auth.Auth); ok {
			auth.Username, auth.Password = user, password
		}
		auth.Auth, auth.ServerAddress = "", key
		return auth, auth.Username != "" || auth.IdentityToken != "" || auth.RegistryToken != ""
	}
	return registry.AuthConfig{}, false
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
	return user, password, ok
}
