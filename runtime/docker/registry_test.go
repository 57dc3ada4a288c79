package docker

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"

	"github.com/stsd/stsd/runtime"
)

// fakeRegistry is a small one: repository "app" with tag "1", and "slow/app",
// whose layer never comes. The engine lets one on loopback speak plain HTTP.
type fakeRegistry struct {
	*httptest.Server
	private  bool // for user:secret only
	end      chan struct{}
	blobs    map[string][]byte
	manifest []byte
}

func newRegistry(t *testing.T, private bool) *fakeRegistry {
	t.Helper()
	r := &fakeRegistry{private: private, end: make(chan struct{}), blobs: map[string][]byte{}}
	var layer bytes.Buffer
	z := gzip.NewWriter(&layer)
	w := tar.NewWriter(z)
	unique := random() // an image that nobody has
	check(t, w.WriteHeader(&tar.Header{Name: unique, Mode: 0o644}))
	check(t, w.Close())
	plain := layerDigest(t, unique)
	check(t, z.Close())
	config, _ := json.Marshal(map[string]any{
		"architecture": goruntime.GOARCH, "os": "linux", "config": map[string]any{"Cmd": []string{"/x"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{plain}},
	})
	r.manifest, _ = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
		"config": map[string]any{"mediaType": "application/vnd.docker.container.image.v1+json", "size": len(config), "digest": r.add(config)},
		"layers": []any{map[string]any{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "size": layer.Len(), "digest": r.add(layer.Bytes())}},
	})
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() { close(r.end); r.Close() })
	return r
}

// layerDigest is the digest of the layer before it is packed.
func layerDigest(t *testing.T, name string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	check(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644}))
	check(t, w.Close())
	return digest(b.Bytes())
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (r *fakeRegistry) add(b []byte) string {
	r.blobs[digest(b)] = b
	return digest(b)
}

func (r *fakeRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := strings.TrimPrefix(req.URL.Path, "/v2/")
	user, password, _ := req.BasicAuth()
	if r.private && user+":"+password != "user:secret" {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		refuse(w, 401, "UNAUTHORIZED", "authentication required")
		return
	}
	repo, what, _ := strings.Cut(path, "/manifests/")
	if _, d, ok := strings.Cut(path, "/blobs/"); ok {
		r.blob(w, req, path, d)
		return
	}
	switch {
	case path == "":
	case !strings.HasSuffix(repo, "app"):
		refuse(w, 404, "NAME_UNKNOWN", "repository name not known to registry")
	case what != "1" && what != digest(r.manifest):
		refuse(w, 404, "MANIFEST_UNKNOWN", "manifest unknown")
	default:
		w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
		w.Header().Set("Docker-Content-Digest", digest(r.manifest))
		w.Header().Set("Content-Length", fmt.Sprint(len(r.manifest)))
		w.Write(r.manifest)
	}
}

func (r *fakeRegistry) blob(w http.ResponseWriter, req *http.Request, path, d string) {
	if strings.HasPrefix(path, "slow/") {
		select {
		case <-req.Context().Done():
		case <-r.end:
		}
		return
	}
	w.Write(r.blobs[d])
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
}

func TestPull(t *testing.T) {
	e := newEnv(t)
	r := newRegistry(t, false)
	addr := r.Listener.Addr().String()
	t.Setenv("DOCKER_CONFIG", t.TempDir())

	ref := addr + "/app:1"
	check(t, e.Pull(t.Context(), ref, nil, nil))
	t.Cleanup(func() { raw().ImageRemove(context.Background(), ref, image.RemoveOptions{}) })
	if id := must(e.ImageID(t.Context(), ref))(t); !strings.HasPrefix(id, "sha256:") {
		t.Errorf("id = %q", id)
	}

	wantProblem(t, e.Pull(t.Context(), addr+"/app:2", nil, nil), runtime.ReasonImageUnknown, "")
	wantProblem(t, e.Pull(t.Context(), addr+"/nosuch:1", nil, nil), runtime.ReasonImageUnknown, "")
	wantProblem(t, e.Pull(t.Context(), "Not A Name", nil, nil), runtime.ReasonImageUnknown, "")
	r.Close()
	wantProblem(t, e.Pull(t.Context(), addr+"/app:1", nil, nil), runtime.ReasonPullFailed, "")
}

func TestPullWithCredentials(t *testing.T) {
	e := newEnv(t)
	addr := newRegistry(t, true).Listener.Addr().String()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	ref := addr + "/app:1"
	wantProblem(t, e.Pull(t.Context(), ref, nil, nil), runtime.ReasonAccessDenied, "")

	login := fmt.Sprintf(`{"auths": {%q: {"auth": "dXNlcjpzZWNyZXQ="}}}`, addr)
	check(t, os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(login), 0o600))
	check(t, e.Pull(t.Context(), ref, nil, nil))
	t.Cleanup(func() { raw().ImageRemove(context.Background(), ref, image.RemoveOptions{}) })
}

func TestPullHeedsContext(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newRegistry(t, false)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := e.Pull(ctx, r.Listener.Addr().String()+"/slow/app:1", nil, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want a deadline", err)
	}
}

func TestPullFromNobody(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	l.Close()
	err := e.Pull(t.Context(), l.Addr().String()+"/app:1", nil, nil)
	wantProblem(t, err, runtime.ReasonPullFailed, "")
	t.Log(err)
}
