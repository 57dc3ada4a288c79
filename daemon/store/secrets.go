package store

import (
	"errors"
	"fmt"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/stsd/stsd/jobspecs"
)

// ErrNoSecret is returned when a secret is not stored.
var ErrNoSecret = errors.New("no such secret")

// Secret is one generated secret of a namespace.
type Secret struct {
	Namespace string    `json:"-"`
	Name      string    `json:"-"`
	Format    string    `json:"format"`
	Length    int       `json:"length"` // characters
	Value     string    `json:"value"`
	Created   time.Time `json:"created"`
}

func secretKey(namespace, name string) []byte { return []byte(namespace + "/" + name) }

// Secret is one secret. ErrNoSecret.
func (s *Store) Secret(namespace, name string) (Secret, error) {
	out := Secret{Namespace: namespace, Name: name}
	err := s.view(func(tx *bolt.Tx) error {
		ok, err := s.box(tx, bucketSecrets).get(secretKey(namespace, name), &out)
		if err == nil && !ok {
			err = fmt.Errorf("%s/%s: %w", namespace, name, ErrNoSecret)
		}
		return err
	})
	return out, err
}

// Secrets lists them by namespace and name.
func (s *Store) Secrets() ([]Secret, error) {
	var out []Secret
	err := s.view(func(tx *bolt.Tx) error {
		return forEach(s.box(tx, bucketSecrets), func(k []byte, v Secret) {
			v.Namespace, v.Name, _ = strings.Cut(string(k), "/")
			out = append(out, v)
		})
	})
	return out, err
}

// DeleteSecret forgets a secret. ErrNoSecret.
func (s *Store) DeleteSecret(namespace, name string) error {
	return s.update(func(tx *bolt.Tx) error {
		b, key := tx.Bucket(bucketSecrets), secretKey(namespace, name)
		if b.Get(key) == nil {
			return fmt.Errorf("%s/%s: %w", namespace, name, ErrNoSecret)
		}
		return b.Delete(key)
	})
}

// putSecret stores a secret that is new. A value that is there is never
// replaced: members may have it. ErrChanged.
func (s *Store) putSecret(tx *bolt.Tx, x Secret) error {
	b, key := s.box(tx, bucketSecrets), secretKey(x.Namespace, x.Name)
	if b.Get(key) != nil {
		return fmt.Errorf("%w: secret %s/%s was made", ErrChanged, x.Namespace, x.Name)
	}
	return b.put(key, x)
}

// registries reads the credentials that were sent for a set, by registry.
func (s *Store) registries(tx *bolt.Tx, key jobspecs.Key, into map[string]jobspecs.RegistryAuth) error {
	return forEach(s.box(tx, bucketRegistries, []byte(key.String())), func(k []byte, a jobspecs.RegistryAuth) { into[string(k)] = a })
}

// putRegistries stores credentials beside those that are there.
func (s *Store) putRegistries(tx *bolt.Tx, key jobspecs.Key, auths map[string]jobspecs.RegistryAuth) error {
	if len(auths) == 0 {
		return nil
	}
	b, err := s.boxIn(tx, bucketRegistries, []byte(key.String()))
	if err != nil {
		return err
	}
	for registry, a := range auths {
		if err := b.put([]byte(registry), a); err != nil {
			return err
		}
	}
	return nil
}
