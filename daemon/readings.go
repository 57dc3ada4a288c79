package daemon

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"sync"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/jobspecs/hcl"
)

// readings remembers what stored sources say: every change of a set compares its
// revisions, each of which is read anew by the running binary. Reading is pure, so
// that the same source and inputs always say the same.
var readings memo[[]jobspecs.Spec]

// moments remembers what templates, and what sets have beside them, look at: every
// turn of a loop asks.
var moments memo[hcl.Moment]

// keptReadings bounds the memory of each; the history of a set is 10 revisions by
// default.
const keptReadings = 200

// memo remembers what was worked out of a text, by its digest.
type memo[T any] struct {
	mu  sync.Mutex
	all map[digest]T
}

type digest = [sha256.Size]byte

func (m *memo[T]) get(key digest) (v T, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok = m.all[key]
	return v, ok
}

func (m *memo[T]) put(key digest, v T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil || len(m.all) >= keptReadings {
		m.all = map[digest]T{}
	}
	m.all[key] = v
}

// longestRead is the length of a part, in bytes, above which it is taken to look at
// all there is: to find out takes longer than it saves.
const longestRead = 1 << 20

// momentsOf is hcl.Moments, remembered.
func momentsOf(part []byte) hcl.Moment {
	if len(part) > longestRead {
		return hcl.Moment{Fresh: true, Formed: true}
	}
	key := sha256.Sum256(part)
	m, ok := moments.get(key)
	if !ok {
		m = hcl.Moments(part)
		moments.put(key, m)
	}
	return m
}

// readSource gives the specs of a source; nil when the running binary does not read it.
func readSource(o jobspecs.Origin) []jobspecs.Spec {
	key, ok := digestOf(o)
	if !ok {
		return nil
	}
	specs, ok := readings.get(key)
	if ok {
		return specs
	}
	if f, _ := hcl.Parse(o.Source, o.Inputs, hcl.Options{}); f != nil {
		specs = f.Specs
	}
	readings.put(key, specs)
	return specs
}

// parseSource is hcl.Parse of what is about to be stored, remembered for readSource.
func parseSource(source []jobspecs.Source, in jobspecs.Inputs, known func(string) map[string]hcl.Other) (*hcl.File, []jobspecs.Diagnostic) {
	f, ds := hcl.Parse(source, in, hcl.Options{Others: known})
	if f == nil {
		return nil, ds
	}
	if key, ok := digestOf(jobspecs.Origin{Source: source, Inputs: f.Inputs}); ok {
		readings.put(key, slices.Clone(f.Specs))
	}
	return f, ds
}

func digestOf(o jobspecs.Origin) (key digest, ok bool) {
	text, err := json.Marshal(jobspecs.Origin{Source: o.Source, Inputs: o.Inputs})
	if err != nil {
		return key, false
	}
	return sha256.Sum256(text), true
}
