package store

import (
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/stsd/stsd/daemon/planner"
	"github.com/stsd/stsd/jobspecs"
)

// strength orders asks: one that is there gives way to a stronger one only.
var strength = map[planner.Ask]int{planner.AskNone: 0, planner.AskTurn: 1, planner.AskNow: 2, planner.AskFresh: 3}

// putAsks writes what the user wants of members. These fields of a member are the
// user's; all others are its loop's.
func putAsks(tx *bolt.Tx, key jobspecs.Key, in *Intent) error {
	if len(in.Asks)+len(in.Stopped) == 0 {
		return nil
	}
	b, err := tx.Bucket(bucketMembers).CreateBucketIfNotExists([]byte(key.String()))
	if err != nil {
		return err
	}
	for o, ask := range in.Asks {
		if err := edit(b, o, func(m *planner.Member) {
			if strength[ask] > strength[m.Ask] {
				m.Ask = ask
			}
		}); err != nil {
			return err
		}
	}
	for o, stopped := range in.Stopped {
		if err := edit(b, o, func(m *planner.Member) { m.Stopped = stopped }); err != nil {
			return err
		}
	}
	return nil
}

func edit(b *bolt.Bucket, ordinal int, change func(*planner.Member)) error {
	var m planner.Member
	if err := getJSON(b, number(ordinal), &m); err != nil {
		return err
	}
	change(&m)
	return putJSON(b, number(ordinal), m)
}

// getJSON reads an entry; an absent one leaves into as it is.
func getJSON(b *bolt.Bucket, key []byte, into any) error {
	text := b.Get(key)
	if text == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("entry %q: %w", key, err)
	}
	return nil
}
