package dns

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Save writes a zone so that a crash leaves the old file or the new one.
func Save(path string, z Zone) error {
	text, err := json.Marshal(z)
	if err != nil {
		return fmt.Errorf("save names: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("save names: %w", err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("save names: %w", err)
	}
	return nil
}

// Load reads what Save wrote. All of it is stale: it was true when it was written. A file that is not there is
// os.ErrNotExist.
func Load(path string) (Zone, error) {
	var z Zone
	text, err := os.ReadFile(path)
	if err != nil {
		return z, fmt.Errorf("load names: %w", err)
	}
	if err := json.Unmarshal(text, &z); err != nil {
		return Zone{}, fmt.Errorf("load names of %s: %w", path, err)
	}
	for i := range z.Sets {
		z.Sets[i].Stale = true
	}
	for i := range z.Networks {
		z.Networks[i].Stale = true
	}
	return z, nil
}
