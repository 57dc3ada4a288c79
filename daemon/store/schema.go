package store

// The bucket tree. Keys of sets are "namespace/name".
//
//	meta
//	  version   the schema's number, decimal; a newer one is refused
//	  id        this store's id: value of the label stsd.daemon
//	sets        KEY → Record (JSON)
//	sources     KEY → what the user wrote: Scope (JSON)
//	revisions
//	  KEY       number, 8 bytes big-endian → jobspecs.Revision (JSON)
//	members
//	  KEY       ordinal, 8 bytes big-endian → planner.Member (JSON)
//	volumes
//	  KEY       volume name → volumes.Record (JSON)
//	networks    namespace → subnet (text)
//	addresses   namespace/member → address (text); outlives the set while its
//	            volumes exist
//	events      sequence, 8 bytes big-endian → jobspecs.Event (JSON)
const schemaVersion = 1

var (
	bucketMeta      = []byte("meta")
	bucketSets      = []byte("sets")
	bucketSources   = []byte("sources")
	bucketRevisions = []byte("revisions")
	bucketMembers   = []byte("members")
	bucketVolumes   = []byte("volumes")
	bucketNetworks  = []byte("networks")
	bucketAddresses = []byte("addresses")
	bucketEvents    = []byte("events")

	buckets = [][]byte{
		bucketMeta, bucketSets, bucketSources, bucketRevisions, bucketMembers,
		bucketVolumes, bucketNetworks, bucketAddresses, bucketEvents,
	}

	keyVersion = []byte("version")
	keyID      = []byte("id")
)
