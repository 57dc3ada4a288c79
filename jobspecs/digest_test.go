package jobspecs

import "testing"

// A digest stands in a label, where everybody may read it: without the key nobody
// can find out a sensitive content by trying.
func TestADigestNeedsTheKey(t *testing.T) {
	spec := PodSpec{Name: "db-0", Containers: []Container{{Name: "db", Files: []File{{Path: "/pw", Content: []byte("1234"), Sensitive: true}}}}}
	plain := spec.Digest()
	spec.Key = []byte("the store's")
	keyed := spec.Digest()
	spec.Key = []byte("another's")
	if plain == keyed || keyed == spec.Digest() {
		t.Errorf("digests %s, %s and %s, want three that differ", plain, keyed, spec.Digest())
	}
}

// What no container is made from is no part of it.
func TestADigestIsOfWhatAContainerIsMadeFrom(t *testing.T) {
	spec := PodSpec{Name: "db-0", Volumes: []VolumeSpec{{Name: "data-db-0"}}, Containers: []Container{{Name: "db"}}}
	before := spec.Digest()
	spec.Volumes[0].Fresh = true
	spec.Containers[0].ImageID, spec.Containers[0].Auth = "sha256:1", &RegistryAuth{Username: "ci"}
	if got := spec.Digest(); got != before {
		t.Errorf("digest = %s, want %s", got, before)
	}
	if !spec.Volumes[0].Fresh || spec.Containers[0].Auth == nil {
		t.Error("the digest changed the spec")
	}
}
