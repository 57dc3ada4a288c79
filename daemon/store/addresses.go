package store

import (
	"fmt"
	"net/netip"
	"strings"

	bolt "go.etcd.io/bbolt"

	"github.com/stsd/stsd/jobspecs"
)

// reserve gives every member of in.Reserve an address. Addresses come from the lower half of the subnet; the engine hands out
// the upper half to others. The first ten stay free for gateways and such.
func reserve(tx *bolt.Tx, namespace string, in *Intent) error {
	return reserveIn(tx, namespace, in.Subnet, in.Reserve)
}

// Reserve gives members of a set an address, the one they had if they had one.
// ErrFull.
func (s *Store) Reserve(namespace string, subnet netip.Prefix, members []string) error {
	return s.update(func(tx *bolt.Tx) error { return reserveIn(tx, namespace, subnet, members) })
}

// free refuses a subnet that another namespace has, to one that does not have it yet.
func free(tx *bolt.Tx, namespace string, subnet netip.Prefix) error {
	b := tx.Bucket(bucketNetworks)
	if string(b.Get([]byte(namespace))) == subnet.String() {
		return nil
	}
	return b.ForEach(func(other, v []byte) error {
		if p, err := netip.ParsePrefix(string(v)); err == nil && string(other) != namespace && p.Overlaps(subnet) {
			return fmt.Errorf("subnet %s is that of namespace %s: %w", subnet, other, ErrSubnetTaken)
		}
		return nil
	})
}

func reserveIn(tx *bolt.Tx, namespace string, subnet netip.Prefix, members []string) error {
	if !subnet.IsValid() {
		return nil
	}
	if err := free(tx, namespace, subnet); err != nil {
		return err
	}
	if err := tx.Bucket(bucketNetworks).Put([]byte(namespace), []byte(subnet.String())); err != nil {
		return err
	}
	b := tx.Bucket(bucketAddresses)
	used := map[netip.Addr]bool{}
	if err := b.ForEach(func(k, v []byte) error {
		if a, err := netip.ParseAddr(string(v)); err == nil && strings.HasPrefix(string(k), namespace+"/") {
			used[a] = true
		}
		return nil
	}); err != nil {
		return err
	}
	next := firstAddress(subnet)
	for _, member := range members {
		key := []byte(namespace + "/" + member)
		if a, err := netip.ParseAddr(string(b.Get(key))); err == nil && subnet.Contains(a) {
			continue
		}
		for used[next] {
			next = next.Next()
		}
		if !next.Less(middle(subnet)) {
			return ErrFull
		}
		used[next] = true
		if err := b.Put(key, []byte(next.String())); err != nil {
			return err
		}
	}
	return nil
}

// release frees the addresses of a set's members but for those kept.
func release(tx *bolt.Tx, key jobspecs.Key, keep []string) error {
	kept := map[string]bool{}
	for _, m := range keep {
		kept[m] = true
	}
	b := tx.Bucket(bucketAddresses)
	var gone [][]byte
	err := b.ForEach(func(k, _ []byte) error {
		ns, member, _ := strings.Cut(string(k), "/")
		set, _, ok := jobspecs.ParseMember(member)
		if ok && ns == key.Namespace && set == key.Name && !kept[member] {
			gone = append(gone, append([]byte(nil), k...))
		}
		return nil
	})
	for _, k := range gone {
		if err == nil {
			err = b.Delete(k)
		}
	}
	return err
}

// firstAddress is the lowest one that members get.
func firstAddress(p netip.Prefix) netip.Addr {
	a := p.Masked().Addr()
	for range 10 {
		a = a.Next()
	}
	return a
}

// middle is where the engine's own range begins.
func middle(p netip.Prefix) netip.Addr {
	half := netip.PrefixFrom(p.Addr(), p.Bits()+1).Masked()
	b := half.Addr().AsSlice()
	bit := p.Bits()
	b[bit/8] |= 1 << (7 - bit%8)
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Addresses are the reserved ones of a set's members, by ordinal.
func (s *Store) Addresses(key jobspecs.Key) (map[int]netip.Addr, error) {
	out := map[int]netip.Addr{}
	err := s.view(func(tx *bolt.Tx) error {
		prefix := key.Namespace + "/" + key.Name + "-"
		c := tx.Bucket(bucketAddresses).Cursor()
		for k, v := c.Seek([]byte(prefix)); k != nil && strings.HasPrefix(string(k), prefix); k, v = c.Next() {
			set, ordinal, ok := jobspecs.ParseMember(strings.TrimPrefix(string(k), key.Namespace+"/"))
			a, err := netip.ParseAddr(string(v))
			if ok && err == nil && set == key.Name {
				out[ordinal] = a
			}
		}
		return nil
	})
	return out, err
}

// Subnets are the networks of the namespaces.
func (s *Store) Subnets() (map[string]netip.Prefix, error) {
	out := map[string]netip.Prefix{}
	err := s.view(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketNetworks).ForEach(func(k, v []byte) error {
			p, err := netip.ParsePrefix(string(v))
			out[string(k)] = p
			return err
		})
	})
	return out, err
}
