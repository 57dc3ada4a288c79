package docker

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"sync"
	"testing"
	"time"
)

func TestRequestsAreCalledByWhatTheyAskFor(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/_ping":                                   "/_ping",
		"/v1.41/info":                              "/info",
		"/v1.41/events":                            "/events",
		"/v1.41/containers/json":                   "/containers/json",
		"/v1.41/containers/create":                 "/containers/create",
		"/v1.41/containers/0123abcd/json":          "/containers/{id}/json",
		"/v1.41/containers/shop.web-0/start":       "/containers/{id}/start",
		"/v1.41/containers/web-0":                  "/containers/{id}",
		"/v1.41/containers/x/secret":               "/containers/{id}",
		"/v1.41/volumes":                           "/volumes",
		"/v1.41/volumes/data-web-0":                "/volumes/{id}",
		"/v1.41/networks/myapp_default/connect":    "/networks/{id}/connect",
		"/v1.41/images/registry:5000/a/b/c:1/json": "/images/{id}/json",
		"/v1.41/images/registry:5000/a/b":          "/images/{id}",
		"/v1.41/distribution/docker.io/lib/x/json": "/distribution/{id}/json",
		"/v1.41/exec/abc/start":                    "/exec/{id}/start",
		"/volumes/v":                               "/volumes/{id}",
		"/v1.41":                                   "/",
		"":                                         "/",
		"/v1.41/unknown/with/names":                "/unknown",
	} {
		if got := callOf("GET", path); got != "GET "+want {
			t.Errorf("%s is %q, want %q", path, got, "GET "+want)
		}
	}
}

func TestEveryRequestIsTold(t *testing.T) {
	t.Parallel()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if r.URL.Path != "/_ping" {
			http.Error(w, `{"message":"no"}`, http.StatusNotFound)
		}
	}))
	var mu sync.Mutex
	var told []string
	h, err := New(Config{Host: "tcp://" + engine.Listener.Addr().String(), Daemon: "x", RunDir: t.TempDir(),
		Called: func(call string, took time.Duration, failed bool) {
			mu.Lock()
			defer mu.Unlock()
			if took <= 0 {
				t.Errorf("%s took %v", call, took)
			}
			told = append(told, call+map[bool]string{true: " failed", false: ""}[failed])
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	_, err = h.Inspect(t.Context(), "web-0")
	if err == nil {
		t.Error("there is a container")
	}
	engine.Close()
	_, _ = h.Inspect(t.Context(), "web-0")
	want := []string{"HEAD /_ping", "GET /containers/{id}/json failed", "GET /containers/{id}/json failed"}
	if !reflect.DeepEqual(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
