package e2e_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"testing"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
)

// loadImage makes an image of one file, /program, for an architecture; it goes with
// the test.
func (w *world) loadImage(tag, arch string, entrypoint []string) {
	w.t.Helper()
	layer := tarOf(w.t, "program", []byte("\x7fELF of another world"))
	sum := sha256.Sum256(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": arch, "os": "linux", "config": map[string]any{"Entrypoint": entrypoint},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum[:])}},
	})
	w.check(err)
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{tag}, "Layers": []string{"layer.tar"}}})
	w.check(err)
	archive := tarOf(w.t, "config.json", config, "layer.tar", layer, "manifest.json", manifest)
	resp, err := engine().ImageLoad(w.t.Context(), bytes.NewReader(archive), client.ImageLoadWithQuiet(true))
	w.check(err)
	_, err = io.Copy(io.Discard, resp.Body)
	w.check(err)
	w.check(resp.Body.Close())
	w.t.Cleanup(func() {
		if _, err := engine().ImageRemove(context.Background(), tag, image.RemoveOptions{Force: true}); err != nil {
			w.t.Log(err)
		}
	})
}

// tarOf is an archive of names and contents in turns.
func tarOf(t testing.TB, entries ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for i := 0; i+1 < len(entries); i += 2 {
		content := entries[i+1].([]byte)
		if err := out.WriteHeader(&tar.Header{Name: entries[i].(string), Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
