// Package examples holds specs that a user can run: `stsd example web`.
package examples

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.hcl
var specs embed.FS

// Get is the text of an example; ok is false when there is none of this name.
func Get(name string) (text []byte, ok bool) {
	text, err := specs.ReadFile(name + ".hcl")
	return text, err == nil
}

// Names are the examples, sorted.
func Names() []string {
	files, err := fs.Glob(specs, "*.hcl")
	if err != nil {
		return nil
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, ".hcl")
	}
	slices.Sort(files) // "redis-roles.hcl" comes before "redis.hcl", and its name after
	return files
}
