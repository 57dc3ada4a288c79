package jobspecs

import "testing"

func TestTheRegistryOfAnImage(t *testing.T) {
	for image, want := range map[string]string{
		"redis": "docker.io", "redis:7": "docker.io", "bitnami/redis:7": "docker.io", "docker.io/library/redis": "docker.io",
		"index.docker.io/a/b": "docker.io", "ghcr.io/a/b@sha256:00": "ghcr.io", "localhost/a": "localhost", "localhost:5000/a:1": "localhost:5000",
		"10.0.0.1:5000/a": "10.0.0.1:5000", "": "docker.io",
	} {
		if got := Registry(image); got != want {
			t.Errorf("registry of %q = %q, want %q", image, got, want)
		}
	}
}
