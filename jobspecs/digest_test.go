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
	v := &spec.Volumes[0]
	v.Fresh, v.Size, v.Driver, v.Options = true, 1<<30, "other", map[string]string{"o": "ro"}
	spec.Containers[0].ImageID, spec.Containers[0].Auth = "sha256:1", &RegistryAuth{Username: "ci"}
	if got := spec.Digest(); got != before {
		t.Errorf("digest = %s, want %s", got, before)
	}
	if v.Size != 1<<30 || !v.Fresh || spec.Containers[0].Auth == nil {
		t.Error("the digest changed the spec")
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 512: "512B", 4096: "4KiB", 1 << 30: "1GiB", 1<<30 + 1<<29: "1.5GiB", 10e9: "10GB", 500e6: "500MB", 996_461_363: "950.3MiB", 5 << 50: "5120TiB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %s, want %s", n, got, want)
		}
	}
}
