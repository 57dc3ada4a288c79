package docker

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
)

// observed tells of every request to the engine.
type observed struct {
	next http.RoundTripper
	tell func(call string, took time.Duration, failed bool)
}

// RoundTrip implements http.RoundTripper.
func (o observed) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	resp, err := o.next.RoundTrip(r)
	o.tell(callOf(r.Method, r.URL.Path), time.Since(start), err != nil || resp.StatusCode >= http.StatusBadRequest)
	return resp, err
}

// kinds are the engine's objects, whose names and ids are left out of a call.
var kinds = []string{"containers", "networks", "volumes", "exec", "images", "distribution", "plugins"}

// onAll are what is asked of all objects of a kind, where a name would stand.
var onAll = []string{"create", "json", "prune", "load", "get", "search"}

// callOf is a request without the version and the names in it: "POST
// /containers/{id}/start".
func callOf(method, path string) string {
	words := strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
	if len(words) > 0 && len(words[0]) > 1 && words[0][0] == 'v' && unicode.IsDigit(rune(words[0][1])) {
		words = words[1:]
	}
	if len(words) == 0 || !slices.Contains(kinds, words[0]) {
		return method + " /" + strings.Join(words[:min(1, len(words))], "/")
	}
	if len(words) == 1 || len(words) == 2 && slices.Contains(onAll, words[1]) {
		return method + " /" + strings.Join(words, "/")
	}
	call := method + " /" + words[0] + "/{id}"
	if last := words[len(words)-1]; len(words) > 2 && verb(last) {
		call += "/" + last
	}
	return call
}

// verb tells whether a word is what is asked of an object, rather than the end of
// an image's name.
func verb(word string) bool {
	return slices.Contains([]string{
		"archive", "attach", "connect", "disconnect", "export", "history", "json", "kill", "logs", "pause", "push", "rename", "resize",
		"restart", "start", "stats", "stop", "tag", "top", "unpause", "update", "wait",
	}, word)
}
