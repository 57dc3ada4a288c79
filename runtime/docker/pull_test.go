package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/docker/docker/api/types/image"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// dropImage removes what a test pulled.
func dropImage(t *testing.T, ref string) {
	t.Cleanup(func() {
		_, _ = raw().ImageRemove(context.Background(), ref, image.RemoveOptions{PruneChildren: true})
	})
}

// problemOf is "Reason: sentence", with the registry's address as ADDR.
func problemOf(err error, addr string) string {
	var p *pods.Problem
	if !errors.As(err, &p) {
		return errorText(err)
	}
	return p.Reason + ": " + strings.ReplaceAll(p.Error(), addr, "ADDR")
}

func TestPull(t *testing.T) {
	e := newEnv(t)
	r := newRegistry(t, open)
	addr := r.Listener.Addr().String()
	dockerConfigured(t, "")
	dropImage(t, r.ref())
	check(t, e.Pull(t.Context(), r.ref(), nil, nil))
	first := must(e.ImageID(t.Context(), r.ref()))(t)
	if !strings.HasPrefix(first, "sha256:") {
		t.Errorf("id = %q", first)
	}

	r.move(r.image(t, goruntime.GOARCH, nil, 1<<10))
	if id := must(e.ImageID(t.Context(), r.ref()))(t); id != first {
		t.Errorf("id = %q before a pull, want %q: a tag that moved at the registry is what it was here", id, first)
	}
	check(t, e.Pull(t.Context(), r.ref(), nil, nil))
	second := must(e.ImageID(t.Context(), r.ref()))(t)
	if second == first {
		t.Error("the tag moved and the id did not")
	}
	if i := must(e.Image(t.Context(), first))(t); i.ID != first {
		t.Errorf("the old image is %q, want %q: members that run it keep it", i.ID, first)
	}
	t.Cleanup(func() { raw().ImageRemove(context.Background(), first, image.RemoveOptions{}) })

	for _, c := range []struct{ ref, want string }{
		{addr + "/app:2", "ImageUnknown: pull ADDR/app:2: the registry has no such tag or digest: manifest unknown"},
		{addr + "/app@" + digest(nil), "ImageUnknown: pull ADDR/app@" + digest(nil) + ": the registry has no such tag or digest: manifest unknown"},
		{addr + "/nosuch:1", "ImageUnknown: pull ADDR/nosuch:1: the registry has no such repository: name unknown"},
		{"Not A Name", `ImageUnknown: "Not A Name" is no image name: invalid reference format: repository name (library/Not A Name) must be lowercase`},
	} {
		if got := problemOf(e.Pull(t.Context(), c.ref, nil, nil), addr); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestPullForAnotherPlatform(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newRegistry(t, open)
	r.move(r.list(t, "s390x", r.image(t, "s390x", nil, 10)))
	engine := e.platform(t.Context())
	want := "WrongPlatform: image ADDR/app:1 is not made for this engine, " + engine + ": no matching manifest for " + engine + " in the manifest list entries"
	if got := problemOf(e.Pull(t.Context(), r.ref(), nil, nil), r.Listener.Addr().String()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestPullWithCredentials(t *testing.T) {
	e := newEnv(t)
	for _, kind := range []string{basic, bearer} {
		r := newRegistry(t, kind)
		addr := r.Listener.Addr().String()
		file := dockerConfigured(t, "")
		dropImage(t, r.ref())
		refused := map[string]string{
			basic:  `Head "http://ADDR/v2/app/manifests/1": no basic auth credentials`,
			bearer: `pull access denied for ADDR/app, repository does not exist or may require 'docker login': denied: requested access to the resource is denied`,
		}[kind]
		wrong := map[string]string{
			basic:  "unauthorized",
			bearer: `Head "http://ADDR/v2/app/manifests/1": unauthorized: incorrect username or password`,
		}[kind]
		where := "registry_auth in the container, or docker login ADDR as the user that runs stsd (" + file + ")"
		for _, c := range []struct {
			name, config string
			auth         *jobspecs.RegistryAuth
			want         string
		}{
			{"nobody", "", nil, "AccessDenied: pull ADDR/app:1: " + refused + ": no credentials were sent; they come from " + where},
			{"the spec's, wrong", "", &jobspecs.RegistryAuth{Username: "user", Password: "wr0ng"},
				"AccessDenied: pull ADDR/app:1: " + wrong + ": user user of registry_auth was refused; credentials come from " + where},
			{"the spec's win over the configuration's", `{"auths": {"` + addr + `": {"auth": "dXNlcjpzZWNyZXQ="}}}`, &jobspecs.RegistryAuth{Username: "user", Password: "wr0ng"},
				"AccessDenied: pull ADDR/app:1: " + wrong + ": user user of registry_auth was refused; credentials come from " + where},
			{"a helper that is not there", `{"credsStore": "nosuch"}`, nil,
				"AccessDenied: pull ADDR/app:1: " + refused + ": no credentials were sent, since docker-credential-nosuch is not in PATH; they come from " + where},
			{"the spec's", "", &jobspecs.RegistryAuth{Username: "user", Password: "secret"}, ""},
			{"the configuration's", `{"auths": {"` + addr + `": {"auth": "dXNlcjpzZWNyZXQ="}}}`, nil, ""},
			{"a helper's", `{"credHelpers": {"` + addr + `": "x"}}`, nil, ""},
		} {
			file := dockerConfigured(t, c.config)
			helperOnPath(t, "x", `echo '{"Username": "user", "Secret": "secret"}'`)
			want := strings.ReplaceAll(c.want, where, strings.Replace(where, filepath.Dir(where[strings.Index(where, "(")+1:]), filepath.Dir(file), 1))
			if got := problemOf(e.Pull(t.Context(), r.ref(), c.auth, nil), addr); got != want {
				t.Errorf("%s, %s:\ngot  %s\nwant %s", kind, c.name, got, want)
			}
		}
	}
}

func TestPullOfADamagedLayer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newRegistry(t, open)
	r.blob = func(w http.ResponseWriter, req *http.Request, content []byte) {
		damaged := slices.Clone(content)
		damaged[len(damaged)-9] ^= 1
		w.Write(damaged)
	}
	got := problemOf(e.Pull(t.Context(), r.ref(), nil, nil), r.Listener.Addr().String())
	want := "PullFailed: pull ADDR/app:1: a layer or manifest came damaged, its digest is another: filesystem layer verification failed for digest sha256:"
	if !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s…", got, want)
	}
}

// The engine asks five times for what broke off; the second time it comes.
func TestPullOfATruncatedLayerIsTriedAgain(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newRegistry(t, open)
	asked := 0
	r.blob = func(w http.ResponseWriter, req *http.Request, content []byte) {
		if asked++; asked > 1 {
			http.ServeContent(w, req, "", time.Time{}, strings.NewReader(string(content)))
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.Write(content[:len(content)/2])
	}
	dropImage(t, r.ref())
	var said []string
	check(t, e.Pull(t.Context(), r.ref(), nil, func(s string) { said = append(said, s) }))
	if !slices.ContainsFunc(said, func(s string) bool { return strings.HasSuffix(s, ", trying a layer again") }) {
		t.Errorf("said %q, want that a layer is tried again", said)
	}
}

func TestSlowPullShowsProgress(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newRegistry(t, open)
	half := make(chan struct{}) // closes when half of it was seen to have come
	r.blob = func(w http.ResponseWriter, req *http.Request, content []byte) {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		w.Write(content[:len(content)/2])
		w.(http.Flusher).Flush()
		select {
		case <-half:
		case <-req.Context().Done():
		}
		w.Write(content[len(content)/2:])
	}
	r.move(r.image(t, goruntime.GOARCH, nil, 8<<20))
	dropImage(t, r.ref())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var said []string
	check(t, e.Pull(ctx, r.ref(), nil, func(s string) {
		if said = append(said, s); strings.HasSuffix(s, " of 8.4 MB") {
			select {
			case <-half:
			default:
				close(half)
			}
		}
	}))
	if !slices.ContainsFunc(said, func(s string) bool { return strings.HasSuffix(s, " MB of 8.4 MB") }) {
		t.Errorf("said %q, want a sum", said)
	}
}

func TestPullHeedsContext(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	r := newRegistry(t, open)
	r.blob = func(w http.ResponseWriter, req *http.Request, content []byte) {
		select {
		case <-req.Context().Done():
		case <-t.Context().Done(): // the engine may ask again when the test is over
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := e.Pull(ctx, r.ref(), nil, nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want a deadline", err)
	}
}

func TestPullFromNobody(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	l.Close()
	addr := l.Addr().String()
	got := problemOf(e.Pull(t.Context(), addr+"/app:1", nil, nil), addr)
	want := `PullFailed: pull ADDR/app:1: the registry does not answer: Get "http://ADDR/v2/": dial tcp ADDR: connect: connection refused`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestReasonsOfPulls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		// Engine 20.10
		{"manifest for redis:nope not found: manifest unknown: manifest unknown", runtime.ReasonImageUnknown},
		{"manifest unknown", runtime.ReasonImageUnknown},
		{"name unknown", runtime.ReasonImageUnknown},
		{"pull access denied for nope, repository does not exist or may require 'docker login': denied: requested access to the resource is denied", runtime.ReasonAccessDenied},
		{"Head https://r.example/v2/a/manifests/1: unauthorized: authentication required", runtime.ReasonAccessDenied},
		{"Get https://r.example/v2/a/manifests/1: no basic auth credentials", runtime.ReasonAccessDenied},
		{"Head https://r.example/v2/a/manifests/1: denied: access forbidden", runtime.ReasonAccessDenied},
		{"no matching manifest for linux/arm64 in the manifest list entries", runtime.ReasonWrongPlatform},
		{"image with reference a was found but does not match the specified platform: wanted linux/arm64, actual: linux/amd64", runtime.ReasonWrongPlatform},
		{"Get https://r.example/v2/: dial tcp: lookup r.example: no such host", runtime.ReasonPullFailed},
		{"Get https://r.example/v2/: x509: certificate signed by unknown authority", runtime.ReasonPullFailed},
		{"Get https://r.example/v2/: http: server gave HTTP response to HTTPS client", runtime.ReasonPullFailed},
		{"toomanyrequests: You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit", runtime.ReasonPullFailed},
		{"filesystem layer verification failed for digest sha256:12", runtime.ReasonPullFailed},
		{"write /var/lib/docker/tmp/GetImageBlob1: no space left on device", runtime.ReasonPullFailed},
		{"failed to register layer: Error processing tar file(exit status 1): write /x: no space left on device", runtime.ReasonPullFailed},
		{"unexpected EOF", runtime.ReasonPullFailed},
		{"unknown blob", runtime.ReasonPullFailed},
		{"received unexpected HTTP status: 500 Internal Server Error", runtime.ReasonPullFailed},
		// Engine 28, with images in containerd
		{"failed to resolve reference \"docker.io/library/redis:nope\": docker.io/library/redis:nope: not found", runtime.ReasonImageUnknown},
		{"failed to resolve reference \"r.example/a:1\": failed to do request: Head \"https://r.example/v2/a/manifests/1\": dial tcp: lookup r.example: no such host", runtime.ReasonPullFailed},
		{"failed to resolve reference \"r.example/a:1\": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed", runtime.ReasonAccessDenied},
		{"failed to resolve reference \"r.example/a:1\": unexpected status from HEAD request to https://r.example/v2/a/manifests/1: 401 Unauthorized", runtime.ReasonAccessDenied},
		{"no match for platform in manifest: not found", runtime.ReasonWrongPlatform},
		{"failed commit on ref \"layer-sha256:1\": unexpected commit digest sha256:2, expected sha256:1: failed precondition", runtime.ReasonPullFailed},
	} {
		if got := pullReason(c.text); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestSentencesOfBrokenPulls(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"write /x: no space left on device":                         "the engine's disk is full: ",
		"filesystem layer verification failed for digest sha256:12": "a layer or manifest came damaged, its digest is another: ",
		"unexpected EOF": "the registry broke off: ",
		"x509: certificate signed by unknown authority":                       "no trusted TLS connection to the registry: ",
		"dial tcp 10.0.0.1:443: connect: no route to host":                    "the registry does not answer: ",
		"net/http: request canceled (Client.Timeout exceeded)":                "the registry does not answer: ",
		"toomanyrequests: You have reached your pull rate limit":              "the registry wants us to wait: ",
		"received unexpected HTTP status: 500 Internal Server Error":          "",
		"http: server gave HTTP response to HTTPS client":                     "no trusted TLS connection to the registry: ",
		"failed commit on ref: unexpected commit size 5, expected 10: failed": "the registry broke off: ",
	} {
		if got := brokenPull(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// pulling feeds lines of the engine, a pause before each, and gives what was said.
func pulling(t *testing.T, pause time.Duration, lines ...string) (said []string, err error) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		go func() {
			for _, l := range lines {
				time.Sleep(pause)
				io.WriteString(w, l+"\n")
			}
			w.Close()
		}()
		err = followPull(r, func(s string) { said = append(said, s) })
		r.Close()
	})
	return said, err
}

func downloading(id string, current, total int) string {
	return fmt.Sprintf(`{"status":"Downloading","progressDetail":{"current":%d,"total":%d},"id":%q}`, current, total, id)
}

func layerSays(id, text string) string {
	return fmt.Sprintf(`{"status":%q,"progressDetail":{},"id":%q}`, text, id)
}

func TestPullProgressAddsUpLayers(t *testing.T) {
	said, err := pulling(t, 510*time.Millisecond, // between two texts
		layerSays("1", "Pulling from library/x"),
		layerSays("a", "Pulling fs layer"),
		layerSays("b", "Already exists"),
		layerSays("c", "Pulling fs layer"),
		downloading("a", 1e6, 20e6),
		downloading("c", 2e6, 10e6),
		layerSays("c", "Retrying in 5 seconds"),
		downloading("c", 2e6, 10e6),
		layerSays("c", "Verifying Checksum"),
		layerSays("c", "Download complete"),
		downloading("a", 12e6, 20e6),
		layerSays("a", "Download complete"),
		layerSays("a", "Extracting"),
		layerSays("a", "Pull complete"),
		layerSays("c", "Pull complete"),
		layerSays("", "Status: Downloaded newer image for x:1"),
	)
	want := []string{
		"0 of 1 layers", "1 of 2 layers", "1 of 3 layers",
		"1 of 3 layers, 1.0 MB", // the size of c is not known yet
		"1 of 3 layers, 3.0 MB of 30 MB",
		"1 of 3 layers, 3.0 MB of 30 MB, trying a layer again",
		"1 of 3 layers, 3.0 MB of 30 MB",
		"1 of 3 layers, 11 MB of 30 MB",
		"2 of 3 layers, 11 MB of 30 MB",
		"2 of 3 layers, 22 MB of 30 MB",
		"extracting 2 of 3 layers", "extracting 3 of 3 layers",
	}
	if !slices.Equal(said, want) || err != nil {
		t.Errorf("said %q, %v\nwant %q", said, err, want)
	}
}

func TestPullProgressWithoutTotals(t *testing.T) {
	said, err := pulling(t, 510*time.Millisecond,
		downloading("a", 1e6, 0), downloading("a", 2e6, -1), downloading("b", 5e6, 1e6), layerSays("a", "Download complete"), `{"errorDetail":{"message":"boom"},"error":"boom"}`)
	want := []string{"0 of 1 layers, 1.0 MB", "0 of 1 layers, 2.0 MB", "0 of 2 layers, 7.0 MB", "1 of 2 layers, 7.0 MB"}
	if !slices.Equal(said, want) || errorText(err) != "boom" {
		t.Errorf("said %q, %v\nwant %q", said, err, want)
	}
}

func TestPullProgressIsToldFourTimesASecond(t *testing.T) {
	var lines []string
	for i := range 100 {
		lines = append(lines, downloading("a", (i+1)*1e6, 100e6))
	}
	said, err := pulling(t, 10*time.Millisecond, lines...) // a second
	if len(said) < 3 || len(said) > 4 || err != nil {
		t.Errorf("said %q, %v; want three or four", said, err)
	}
}

func TestCutPullIsALostEngine(t *testing.T) {
	t.Parallel()
	if err := followPull(strings.NewReader(`{"status":"Down`), nil); !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, runtime.ErrUnreachable) {
		t.Errorf("a cut stream: %v", err)
	}
}
