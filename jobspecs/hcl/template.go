package hcl

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

// anyContainer as a container's name stands for the only one, or all of them.
const anyContainer = "*"

// WithImages puts other images in: container → image. The name "" or "*" stands
// for every container.
func WithImages(t jobspecs.Template, images map[string]string) (jobspecs.Template, error) {
	doc, err := decodeDocument(t)
	if err != nil {
		return nil, err
	}
	containers := part(doc, "container")
	for _, name := range sortedKeys(images) {
		if err := checkImage(images[name]); err != nil {
			return nil, err
		}
		if err := setImage(containers, name, images[name]); err != nil {
			return nil, err
		}
	}
	return encode(doc), nil
}

func setImage(containers document, name, ref string) error {
	if name == "" || name == anyContainer {
		for _, c := range sortedKeys(containers) {
			part(containers, c)["image"] = ref
		}
		return nil
	}
	c := part(containers, name)
	if c == nil {
		return fmt.Errorf("there is no container %q; there is %s", name, strings.Join(sortedKeys(containers), ", "))
	}
	c["image"] = ref
	return nil
}

// WithRestart marks a template, so that it is another revision of the same
// content: `rollout restart`.
func WithRestart(t jobspecs.Template, stamp string) jobspecs.Template {
	doc, err := decodeDocument(t)
	if err != nil {
		return t
	}
	doc["restarted"] = stamp
	return encode(doc)
}

// hashLetters are digits and consonants: a hash forms no words.
const hashLetters = "bcdfghjklmnpqrstvwxz2456789"

var hashOfNothing = Hash(nil, "")

// Hash names a template. It is given once, when a revision is stored, and never
// compared; salt makes another one should it be taken.
func Hash(t jobspecs.Template, salt string) string {
	h := sha256.New()
	h.Write(t)
	h.Write([]byte{0})
	h.Write([]byte(salt))
	sum := h.Sum(nil)
	out := make([]byte, jobspecs.HashLength)
	for i := range out {
		out[i] = hashLetters[int(sum[i])%len(hashLetters)]
	}
	return string(out)
}

// MountedClaims are the claims that some container mounts, sorted.
func MountedClaims(t jobspecs.Template) []string {
	doc, err := decodeDocument(t)
	if err != nil {
		return nil
	}
	var names []string
	containers := part(doc, "container")
	for _, c := range sortedKeys(containers) {
		names = append(names, sortedKeys(part(containers, c, "mount"))...)
	}
	return sortedUnique(names)
}
