package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// sealVersion is the first byte of a sealed value. JSON never begins with it.
const sealVersion = 1

var (
	// ErrKey is returned by Open when the key file is missing, is not that of the
	// state file, or could be read by others.
	ErrKey = errors.New("key file")
	// ErrNotSealed is returned by Unseal of what this store did not seal.
	ErrNotSealed = errors.New("it was not sealed with this store's key")
)

// A sealer seals values and opens them again. A value is bound to its place: one
// that was moved elsewhere does not open.
type sealer struct {
	aead cipher.AEAD
	hash []byte // key of hashes; says nothing about that of the AEAD

	known known
}

func newSealer(key []byte) (*sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("stsd hashes"))
	return &sealer{aead: aead, hash: mac.Sum(nil)}, nil
}

// seal gives sealVersion, nonce and ciphertext.
func (s *sealer) seal(place string, text []byte) []byte {
	out := make([]byte, 1+s.aead.NonceSize(), 1+s.aead.NonceSize()+len(text)+s.aead.Overhead())
	out[0] = sealVersion
	rand.Read(out[1:]) // never fails (crypto/rand)
	return s.aead.Seal(out, out[1:], text, []byte(place))
}

func (s *sealer) open(place string, sealed []byte) ([]byte, error) {
	head := 1 + s.aead.NonceSize()
	if len(sealed) < head || sealed[0] != sealVersion {
		return nil, ErrNotSealed
	}
	text, err := s.aead.Open(nil, sealed[1:head], sealed[head:], []byte(place))
	if err != nil {
		return nil, ErrNotSealed
	}
	return text, nil
}

// A box is a bucket whose values are sealed.
type box struct {
	*bolt.Bucket // nil: it is empty
	*sealer
	name string
}

func (b box) place(key []byte) string { return b.name + "/" + string(key) }

func (b box) put(key []byte, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put(key, b.seal(b.place(key), text))
}

// get reads an entry; ok is false when there is none.
func (b box) get(key []byte, into any) (ok bool, err error) {
	if b.Bucket == nil {
		return false, nil
	}
	sealed := b.Get(key)
	if sealed == nil {
		return false, nil
	}
	return true, b.read(key, sealed, into)
}

func (b box) read(key, sealed []byte, into any) error {
	place, nonce := b.place(key), sealed[:min(len(sealed), 1+b.aead.NonceSize())]
	if b.known.read(place, nonce, into) {
		return nil
	}
	text, err := b.sealer.open(place, sealed)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s, entry %q: %w", b.name, key, err)
	}
	b.known.note(place, nonce, into)
	return nil
}

// forEach reads a box in key order.
func forEach[T any](b box, each func(key []byte, v T)) error {
	if b.Bucket == nil {
		return nil
	}
	return b.ForEach(func(k, sealed []byte) error {
		if sealed == nil { // a bucket inside
			return nil
		}
		var v T
		if err := b.read(k, sealed, &v); err != nil {
			return err
		}
		each(k, v)
		return nil
	})
}

// box is a bucket of sealed values, at the end of a path of names.
func (s *Store) box(tx *bolt.Tx, path ...[]byte) box {
	out := box{sealer: s.sealer, name: string(path[0])}
	out.Bucket = tx.Bucket(path[0])
	for _, name := range path[1:] {
		out.name += "/" + string(name)
		if out.Bucket != nil {
			out.Bucket = out.Bucket.Bucket(name)
		}
	}
	return out
}

// boxIn is box, made where it is missing.
func (s *Store) boxIn(tx *bolt.Tx, outer, name []byte) (box, error) {
	b, err := tx.Bucket(outer).CreateBucketIfNotExists(name)
	return box{Bucket: b, sealer: s.sealer, name: string(outer) + "/" + string(name)}, err
}

// HashKey is the key for hashes of what is sensitive. It is derived from the key
// file and stays the same.
func (s *Store) HashKey() []byte { return s.hash }

// placeOfParcel binds what Seal gives to its use.
const placeOfParcel = "parcel"

// Seal seals something that is kept outside, until Unseal.
func (s *Store) Seal(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return s.seal(placeOfParcel, text), nil
}

// Unseal reads what Seal of this store gave. ErrNotSealed.
func (s *Store) Unseal(sealed []byte, into any) error {
	text, err := s.sealer.open(placeOfParcel, sealed)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// upgrade seals the values that schema 1 kept in the clear. Nothing in them was
// sensitive: it refused sensitive variables and had no secrets.
func (s *Store) upgrade(tx *bolt.Tx) error {
	for _, name := range [][]byte{bucketSets, bucketSources} {
		if err := s.sealAll(box{tx.Bucket(name), s.sealer, string(name)}); err != nil {
			return err
		}
	}
	var keys [][]byte
	if err := tx.Bucket(bucketRevisions).ForEachBucket(func(key []byte) error {
		keys = append(keys, append([]byte(nil), key...))
		return nil
	}); err != nil {
		return err
	}
	for _, key := range keys {
		if err := s.sealAll(s.box(tx, bucketRevisions, key)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) sealAll(b box) error {
	var keys [][]byte
	if err := b.ForEach(func(k, _ []byte) error {
		keys = append(keys, append([]byte(nil), k...))
		return nil
	}); err != nil {
		return err
	}
	for _, k := range keys {
		if err := b.Put(k, b.seal(b.place(k), append([]byte(nil), b.Get(k)...))); err != nil {
			return fmt.Errorf("seal %s: %w", b.place(k), err)
		}
	}
	return nil
}
