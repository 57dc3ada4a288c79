package store

import (
	"net/netip"

	bolt "go.etcd.io/bbolt"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
)

// Found is a set that was put together from what an engine has of it.
type Found struct {
	Record    Record
	Members   map[int]planner.Member
	Addresses map[int]netip.Addr
	Subnet    netip.Prefix // of its namespace; zero: not known
}

// TakeOver stores sets that were found, in one commit. One that is stored is left as
// it is. It tells which were not.
func (s *Store) TakeOver(found []Found) (taken []jobspecs.Key, err error) {
	err = s.update(func(tx *bolt.Tx) error {
		taken = nil
		for i := range found {
			key := found[i].Record.Key()
			if tx.Bucket(bucketSets).Get([]byte(key.String())) != nil {
				continue
			}
			if err := s.takeIn(tx, key, &found[i]); err != nil {
				return err
			}
			taken = append(taken, key)
		}
		return nil
	})
	return taken, err
}

func (s *Store) takeIn(tx *bolt.Tx, key jobspecs.Key, f *Found) error {
	f.Record.Generation = 1
	if err := s.box(tx, bucketSets).put([]byte(key.String()), f.Record); err != nil {
		return err
	}
	if err := learnMembers(tx, key, Facts{Members: f.Members}); err != nil {
		return err
	}
	for o, a := range f.Addresses {
		name := key.Namespace + "/" + jobspecs.MemberName(key.Name, o)
		if err := tx.Bucket(bucketAddresses).Put([]byte(name), []byte(a.String())); err != nil {
			return err
		}
	}
	if !f.Subnet.IsValid() {
		return nil
	}
	return tx.Bucket(bucketNetworks).Put([]byte(key.Namespace), []byte(f.Subnet.String()))
}
