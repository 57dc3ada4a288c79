package store

// The bucket tree. Keys of sets are "namespace/name". Sealed values are AES-GCM
// of their JSON, under the key file beside the state file.
//
//	meta
//	  version   the schema's number, decimal; a newer one is refused
//	  id        this store's id: value of the label stsd.daemon
//	  seal      "stsd", sealed: tells the right key from others
//	sets        KEY → Record (sealed)
//	sources     KEY → what the user wrote: Scope (sealed)
//	revisions
//	  KEY       number, 8 bytes big-endian → jobspecs.Revision (sealed)
//	members
//	  KEY       ordinal, 8 bytes big-endian → planner.Member (JSON)
//	volumes
//	  KEY       volume name → volumes.Record (JSON); outlives the set while the
//	            volume exists
//	formed      KEY → "1": a set that is forgotten, was formed once, and whose
//	            volumes have records still
//	networks    namespace → subnet (text)
//	addresses   namespace/member → address (text); outlives the set while its
//	            volumes exist
//	events      sequence, 8 bytes big-endian → jobspecs.Event (JSON)
//	secrets     namespace/name → Secret (sealed); outlives the sets that use it
//	registries
//	  KEY       registry → jobspecs.RegistryAuth (sealed)
//
// Schema 1 had neither seals nor the last two.
const schemaVersion = 2

var (
	bucketMeta      = []byte("meta")
	bucketSets      = []byte("sets")
	bucketSources   = []byte("sources")
	bucketRevisions = []byte("revisions")
	bucketMembers   = []byte("members")
	bucketVolumes   = []byte("volumes")
	bucketFormed    = []byte("formed")
	bucketNetworks  = []byte("networks")
	bucketAddresses = []byte("addresses")
	bucketEvents    = []byte("events")
	bucketSecrets   = []byte("secrets")

	bucketRegistries = []byte("registries")

	buckets = [][]byte{
		bucketMeta, bucketSets, bucketSources, bucketRevisions, bucketMembers,
		bucketVolumes, bucketFormed, bucketNetworks, bucketAddresses, bucketEvents,
		bucketSecrets, bucketRegistries,
	}

	keyVersion = []byte("version")
	keyID      = []byte("id")
	keySeal    = []byte("seal")
)
