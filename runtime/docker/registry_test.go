package docker

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
)

// Media types of what a registry keeps.
const (
	mediaManifest = "application/vnd.docker.distribution.manifest.v2+json"
	mediaList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	mediaConfig   = "application/vnd.docker.container.image.v1+json"
	mediaLayer    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// How a registry wants to be asked.
const (
	open   = ""
	basic  = "basic"  // user:secret with every request
	bearer = "bearer" // a token of its own token service; one without a name opens nothing, as at Docker Hub
)

// fakeRegistry is a small registry: repository "app" (under any folder) with tag
// "1". The engine lets one on loopback speak plain HTTP.
type fakeRegistry struct {
	*httptest.Server
	auth string
	blob func(w http.ResponseWriter, r *http.Request, content []byte) // how a layer is sent; nil: at once

	mu     sync.Mutex
	blobs  map[string][]byte
	media  map[string]string // digest of a manifest or list → its media type
	layers map[string]bool   // digests that blob sends
	tag    string            // digest of what tag "1" means
}

// newRegistry has one image, for this platform, that nobody has.
func newRegistry(t testing.TB, auth string) *fakeRegistry {
	t.Helper()
	r := &fakeRegistry{auth: auth, blobs: map[string][]byte{}, media: map[string]string{}, layers: map[string]bool{}}
	r.tag = r.image(t, goruntime.GOARCH, nil, 1<<10)
	r.Server = httptest.NewServer(r)
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	return r
}

func (r *fakeRegistry) ref() string { return r.Listener.Addr().String() + "/app:1" }

// image makes one with a layer of each size, that runs program as /program, and
// returns its manifest's digest.
func (r *fakeRegistry) image(t testing.TB, arch string, program []byte, sizes ...int) string {
	t.Helper()
	var diffs, layers []any
	for i, size := range sizes {
		noise := make([]byte, size)
		rand.Read(noise)
		files := map[string][]byte{random(): noise}
		if i == 0 && program != nil {
			files["program"] = program
		}
		plain, packed := layer(t, files)
		d := r.add(packed)
		r.layers[d] = true
		diffs = append(diffs, digest(plain))
		layers = append(layers, map[string]any{"mediaType": mediaLayer, "size": len(packed), "digest": d})
	}
	config := must(json.Marshal(map[string]any{
		"architecture": arch, "os": "linux", "config": map[string]any{"Cmd": []string{"/program"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": diffs},
	}))(t)
	return r.manifest(t, mediaManifest, map[string]any{
		"config": map[string]any{"mediaType": mediaConfig, "size": len(config), "digest": r.add(config)}, "layers": layers,
	})
}

// list is a manifest list with one image.
func (r *fakeRegistry) list(t testing.TB, arch, manifest string) string {
	t.Helper()
	return r.manifest(t, mediaList, map[string]any{"manifests": []any{map[string]any{
		"mediaType": mediaManifest, "size": len(r.blobs[manifest]), "digest": manifest,
		"platform": map[string]any{"architecture": arch, "os": "linux"},
	}}})
}

func (r *fakeRegistry) manifest(t testing.TB, media string, m map[string]any) string {
	t.Helper()
	m["schemaVersion"], m["mediaType"] = 2, media
	d := r.add(must(json.Marshal(m))(t))
	r.media[d] = media
	return d
}

// move makes tag "1" mean another image.
func (r *fakeRegistry) move(manifest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tag = manifest
}

func layer(t testing.TB, files map[string][]byte) (plain, packed []byte) {
	t.Helper()
	var a, z bytes.Buffer
	w := tar.NewWriter(&a)
	for name, content := range files {
		check(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
		must(w.Write(content))(t)
	}
	check(t, w.Close())
	gz := gzip.NewWriter(&z)
	must(gz.Write(a.Bytes()))(t)
	check(t, gz.Close())
	return a.Bytes(), z.Bytes()
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
	if req.URL.Path == "/token" {
		giveToken(w, req)
		return
	}
	if !r.admits(req) {
		r.challenge(w)
		return
	}
	path := strings.TrimPrefix(req.URL.Path, "/v2/")
	repo, what, _ := strings.Cut(path, "/manifests/")
	_, blob, isBlob := strings.Cut(path, "/blobs/")
	r.mu.Lock()
	if what == "1" {
		what = r.tag
	}
	content, media, isLayer := r.blobs[blob], r.media[what], r.layers[blob]
	manifest := r.blobs[what]
	r.mu.Unlock()
	switch {
	case path == "":
	case isBlob && isLayer && r.blob != nil:
		r.blob(w, req, content)
	case isBlob:
		w.Write(content)
	case !strings.HasSuffix(repo, "app"):
		refuse(w, 404, "NAME_UNKNOWN", "repository name not known to registry")
	case media == "":
		refuse(w, 404, "MANIFEST_UNKNOWN", "manifest unknown")
	default:
		w.Header().Set("Content-Type", media)
		w.Header().Set("Docker-Content-Digest", what)
		w.Header().Set("Content-Length", fmt.Sprint(len(manifest)))
		w.Write(manifest)
	}
}

func (r *fakeRegistry) admits(req *http.Request) bool {
	switch r.auth {
	case basic:
		user, password, _ := req.BasicAuth()
		return user+":"+password == "user:secret"
	case bearer:
		return req.Header.Get("Authorization") == "Bearer of-user"
	}
	return true
}

func (r *fakeRegistry) challenge(w http.ResponseWriter) {
	if r.auth == basic {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		refuse(w, 401, "UNAUTHORIZED", "authentication required")
		return
	}
	w.Header().Set("WWW-Authenticate",
		fmt.Sprintf(`Bearer realm="%s/token",service="registry.test",scope="repository:app:pull",error="insufficient_scope"`, r.URL))
	refuse(w, 401, "UNAUTHORIZED", "authentication required")
}

// giveToken is the token service: who says nothing gets a token that opens nothing.
func giveToken(w http.ResponseWriter, req *http.Request) {
	user, password, named := req.BasicAuth()
	switch {
	case named && user+":"+password != "user:secret":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(401)
		fmt.Fprint(w, `{"details":"incorrect username or password"}`)
	case named:
		fmt.Fprint(w, `{"token":"of-user","expires_in":300}`)
	default:
		fmt.Fprint(w, `{"token":"of-nobody","expires_in":300}`)
	}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
}
