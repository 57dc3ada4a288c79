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
var readings = memo{all: map[[sha256.Size]byte][]jobspecs.Spec{}}

// keptReadings bounds the memory; the history of a set is 10 revisions by default.
const keptReadings = 200

// moments remembers what templates, and what sets have beside them, look at: every
// turn of a loop asks.
var moments = momentMemo{all: map[[sha256.Size]byte]hcl.Moment{}}

// longestRead is the length of a part, in bytes, above which it is taken to look at
// all there is: to find out takes longer than it saves.
const longestRead = 1 << 20

type momentMemo struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]hcl.Moment
}

func (m *momentMemo) of(part []byte) hcl.Moment {
	if len(part) > longestRead {
		return hcl.Moment{Fresh: true, Formed: true}
	}
	key := sha256.Sum256(part)
	m.mu.Lock()
	defer m.mu.Unlock()
	if known, ok := m.all[key]; ok {
		return known
	}
	if len(m.all) >= keptReadings {
		clear(m.all)
	}
	m.all[key] = hcl.Moments(part)
	return m.all[key]
}

type memo struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte][]jobspecs.Spec
}

// read gives the specs of a source; nil when the running binary does not read it.
func (m *memo) read(o jobspecs.Origin) []jobspecs.Spec {
	key, ok := keyOfReading(o)
	if !ok {
		return nil
	}
	m.mu.Lock()
	specs, ok := m.all[key]
	m.mu.Unlock()
	if ok {
		return specs
	}
	if f, _ := hcl.Parse(o.Source, o.Inputs, hcl.Options{}); f != nil {
		specs = f.Specs
	}
	m.put(key, specs)
	return specs
}

// parse is hcl.Parse of what is about to be stored.
func (m *memo) parse(source []jobspecs.Source, in jobspecs.Inputs, known func(string) map[string]hcl.Other) (*hcl.File, []jobspecs.Diagnostic) {
	f, ds := hcl.Parse(source, in, hcl.Options{Others: known})
	if f == nil {
		return nil, ds
	}
	if key, ok := keyOfReading(jobspecs.Origin{Source: source, Inputs: f.Inputs}); ok {
		m.put(key, slices.Clone(f.Specs))
	}
	return f, ds
}

func (m *memo) put(key [sha256.Size]byte, specs []jobspecs.Spec) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) >= keptReadings {
		clear(m.all)
	}
	m.all[key] = specs
}

func keyOfReading(o jobspecs.Origin) (key [sha256.Size]byte, ok bool) {
	text, err := json.Marshal(jobspecs.Origin{Source: o.Source, Inputs: o.Inputs})
	if err != nil {
		return key, false
	}
	return sha256.Sum256(text), true
}
