package store

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/stsd/stsd/jobspecs"
)

// known remembers what the records and revisions that were read last say: a loop
// reads them at every turn, and they seldom change. A value is written under
// another nonce each time, so that the nonce tells whether it is the same still.
type known struct {
	mu  sync.Mutex
	all map[string]decoded // by place
}

type decoded struct {
	nonce []byte
	value any // Record or jobspecs.Revision
}

// keptKnown bounds the memory, in values.
const keptKnown = 4096

// read fills into from what is known of a sealed value; false: it is not known.
func (k *known) read(place string, nonce []byte, into any) bool {
	k.mu.Lock()
	d, ok := k.all[place]
	k.mu.Unlock()
	if !ok || !bytes.Equal(d.nonce, nonce) {
		return false
	}
	switch into := into.(type) {
	case *Record:
		r, ok := d.value.(Record)
		*into = r.clone()
		return ok
	case *jobspecs.Revision:
		r, ok := d.value.(jobspecs.Revision)
		*into = cloneRevision(r)
		return ok
	}
	return false
}

// note remembers what a sealed value says; of other types it remembers nothing.
func (k *known) note(place string, nonce []byte, said any) {
	d := decoded{nonce: bytes.Clone(nonce)}
	switch said := said.(type) {
	case *Record:
		d.value = said.clone()
	case *jobspecs.Revision:
		d.value = cloneRevision(*said)
	default:
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil || len(k.all) >= keptKnown {
		k.all = map[string]decoded{}
	}
	k.all[place] = d
}

// clone shares with r only what nobody changes in place: what the user wrote.
func (r *Record) clone() Record {
	out := *r
	out.Overrides = cloneOverrides(r.Overrides)
	out.HooksDone = maps.Clone(r.HooksDone)
	out.Failed = slices.Clone(r.Failed)
	out.Deleting = clonePointer(r.Deleting)
	out.Halted = clonePointer(r.Halted)
	out.Rolled = clonePointer(r.Rolled)
	if out.Rolled != nil {
		out.Rolled.Overrides = cloneOverrides(r.Rolled.Overrides)
	}
	return out
}

func cloneOverrides(o jobspecs.Overrides) jobspecs.Overrides {
	o.Replicas, o.Images = clonePointer(o.Replicas), maps.Clone(o.Images)
	return o
}

func cloneRevision(r jobspecs.Revision) jobspecs.Revision {
	r.ImageIDs = maps.Clone(r.ImageIDs)
	return r
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// texts remembers what texts of JSON say that are read again and again. A T has
// nothing that is shared by its copies.
type texts[T any] struct {
	mu  sync.Mutex
	all map[string]T
}

// read decodes a text, or says what it said before; of nil nothing is remembered.
func (t *texts[T]) read(text []byte) (v T, err error) {
	if t == nil {
		return v, json.Unmarshal(text, &v)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if v, ok := t.all[string(text)]; ok {
		return v, nil
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return v, err
	}
	if t.all == nil || len(t.all) >= keptKnown {
		t.all = map[string]T{}
	}
	t.all[string(text)] = v
	return v, nil
}
