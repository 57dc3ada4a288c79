package jobspecs

import "strings"

// DockerHub is the registry of images that name none.
const DockerHub = "docker.io"

// Registry is the registry that an image comes from: "docker.io" for redis:7,
// "ghcr.io" for ghcr.io/a/b, "localhost:5000" for localhost:5000/a.
func Registry(image string) string {
	first, _, ok := strings.Cut(image, "/")
	switch {
	case !ok || !strings.ContainsAny(first, ".:") && first != "localhost" && strings.ToLower(first) == first:
		return DockerHub
	case first == "index.docker.io":
		return DockerHub
	}
	return first
}
