package hcl

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/stsd/stsd/jobspecs"
)

// anyContainer as a container's name stands for all of them.
const anyContainer = "*"

// WithImages puts other images in: container → image, where container is the name
// of a container, init or sidecar block. "*" stands for every one, "" for the only
// one.
func WithImages(t jobspecs.Template, images map[string]string) (jobspecs.Template, error) {
	doc, err := decodeDocument(t)
	if err != nil {
		return nil, err
	}
	containers := partsOf(doc)
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

func setImage(containers []containerPart, name, ref string) error {
	if name == "" && len(containers) > 1 {
		return fmt.Errorf("name the container, or %s for all: there are %s", anyContainer, namesOf(containers))
	}
	met := false
	for _, p := range containers {
		if name == "" || name == anyContainer || name == p.name {
			p.doc["image"], met = ref, true
		}
	}
	if !met {
		return fmt.Errorf("there is no container %q; there is %s", name, namesOf(containers))
	}
	return nil
}

func namesOf(containers []containerPart) string {
	var names []string
	for _, p := range containers {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
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

var hashOfNothing = Hash(nil, "", nil)

// Hash names a template. It is given once, when a revision is stored, and never
// compared; salt makes another one should it be taken. Of a template that holds
// something sensitive nobody without the key can tell from a hash what it is.
func Hash(t jobspecs.Template, salt string, key []byte) string {
	h := sha256.New()
	if Sensitive(t) {
		h = hmac.New(sha256.New, key)
	}
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
	for _, p := range partsOf(doc) {
		for name := range part(p.doc, "mount") {
			if kindOfMount(doc, name) == jobspecs.MountVolume {
				names = append(names, name)
			}
		}
	}
	return sortedUnique(names)
}
