package hostdns

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
)

// Receipt is what an installation did, and all that is needed to take it back.
// Paths are as seen from the root.
type Receipt struct {
	Method   Method         `json:"method"`
	Server   netip.AddrPort `json:"server"`
	Zones    []string       `json:"zones"`
	Files    []Kept         `json:"files"`
	Folders  []string       `json:"folders,omitempty"` // that were made, the outermost first
	Commands [][]string     `json:"commands,omitempty"`
}

// Kept is a file that was written.
type Kept struct {
	Path   string  `json:"path"`
	Block  string  `json:"block,omitempty"`  // only the block of this daemon is ours
	Wrote  []byte  `json:"wrote,omitempty"`  // without Block
	Before *Before `json:"before,omitempty"` // nil: there was none
}

// receiptFile is where it lies: beside the state of a daemon, not in it, since it
// outlives any.
const receiptFile = "/var/lib/stsd/dns-install.json"

// Installed is the receipt of what is installed; nil: nothing is.
func Installed(h Host) (*Receipt, error) {
	text, err := os.ReadFile(h.at(receiptFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what is installed: %w", err)
	}
	r := &Receipt{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read what is installed: %s: %w", h.at(receiptFile), err)
	}
	return r, nil
}

// State of a file that was written.
type State string

// The states.
const (
	Intact  State = "intact"  // as it was written; of a block: it is there
	Missing State = "missing" // somebody removed it
	Changed State = "changed" // somebody wrote into it
)

// state looks at a file that was written.
func (h Host) state(k Kept) (State, error) {
	b, err := before(h.at(k.Path))
	switch {
	case err != nil:
		return Changed, err
	case b == nil:
		return Missing, nil
	case k.Block != "":
		return blockState(b.Text, k)
	case bytes.Equal(b.Text, k.Wrote):
		return Intact, nil
	case k.Before != nil && bytes.Equal(b.Text, k.Before.Text):
		return Missing, nil
	}
	return Changed, nil
}

func blockState(text []byte, k Kept) (State, error) {
	_, ok, err := find(text, k.Block)
	switch {
	case err != nil:
		return Changed, fmt.Errorf("%s: %w", k.Path, err)
	case !ok:
		return Missing, nil
	}
	return Intact, nil
}

// serves tells whether the receipt is one of this very plan.
func (r *Receipt) serves(p Plan) bool {
	return r.Method == p.Method && slices.EqualFunc(r.Files, p.Files, func(k Kept, f File) bool {
		return k.Path == f.Path && k.Block == f.Block && string(k.Wrote) == f.Text
	})
}

// keep writes the receipt so that it outlives a crash.
func (h Host) keep(r *Receipt) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	name := h.at(receiptFile)
	temp := tempName(name)
	if err := errors.Join(gone(temp), os.WriteFile(temp, append(text, '\n'), 0o600)); err != nil {
		return fmt.Errorf("keep what was there before: %w", err)
	}
	f, err := os.Open(temp)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(temp, name)); err != nil {
		return fmt.Errorf("keep what was there before: %w", err)
	}
	return syncFolder(filepath.Dir(name))
}
