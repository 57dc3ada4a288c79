// Package client is the Go client of the daemon's API; the command line uses
// nothing else. Its errors are *Problem where the daemon answered with one, and
// *Unreachable where no daemon answered.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stsd/stsd/jobspecs"
)

// Client speaks to one daemon. It is safe for concurrent use.
type Client struct {
	http *http.Client
}

// New makes a client of the first of hosts that answers; they are tried in
// order for every new connection, so nothing is dialled here. A host is
// "unix:///path/to/socket".
func New(hosts ...string) (*Client, error) {
	var paths []string
	for _, h := range hosts {
		p, err := SocketPath(h)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dialFirst(ctx, paths) }
	return &Client{http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableCompression: true}}}, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// SocketPath is the path that a host names.
func SocketPath(host string) (string, error) {
	scheme, rest, ok := strings.Cut(host, "://")
	switch {
	case !ok && strings.HasPrefix(host, "/"):
		return host, nil
	case scheme == "unix" && strings.HasPrefix(rest, "/"):
		return rest, nil
	case scheme == "tcp":
		return "", fmt.Errorf("%s needs mutual TLS: not supported yet", host)
	case scheme == "ssh":
		return "", fmt.Errorf("%s: ssh is not supported yet", host)
	}
	return "", fmt.Errorf("%q is no host: want unix:///path/to/stsd.sock", host)
}

// Unreachable tells that no daemon answered, and where it was looked for.
type Unreachable struct {
	Hosts  []string // in the order tried
	Errors []error  // one per host
}

func (u *Unreachable) Error() string {
	if len(u.Hosts) == 0 {
		return "no daemon to ask: no host given"
	}
	var tried []string
	for i, h := range u.Hosts {
		tried = append(tried, fmt.Sprintf("%s: %v", h, rootCause(u.Errors[i])))
	}
	return "no daemon answers at " + strings.Join(tried, ", nor at ")
}

func (u *Unreachable) Unwrap() []error { return u.Errors }

// rootCause drops "dial unix /path: connect:" from an error of the net package.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

func dialFirst(ctx context.Context, paths []string) (net.Conn, error) {
	failed := &Unreachable{}
	for _, p := range paths {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", p)
		if err == nil {
			return conn, nil
		}
		failed.Hosts = append(failed.Hosts, "unix://"+p)
		failed.Errors = append(failed.Errors, err)
	}
	return nil, failed
}

// Apply stores the sets of r, all of them or none.
func (c *Client) Apply(ctx context.Context, r ApplyRequest) (ApplyResponse, error) {
	return post[ApplyResponse](ctx, c, "/v1/apply", r)
}

// Plan tells what Apply would do and writes nothing.
func (c *Client) Plan(ctx context.Context, r ApplyRequest) (PlanResponse, error) {
	return post[PlanResponse](ctx, c, "/v1/plan", r)
}

// Scale overrides the number of replicas.
func (c *Client) Scale(ctx context.Context, set jobspecs.Key, r ScaleRequest) (Result, error) {
	return post[Result](ctx, c, setPath(set, "scale"), r)
}

// ChangeMembers restarts, replaces, stops or starts members.
func (c *Client) ChangeMembers(ctx context.Context, set jobspecs.Key, r MembersRequest) (Result, error) {
	return post[Result](ctx, c, setPath(set, "members"), r)
}

// FreshVolume gives up a member's data: it starts with empty volumes.
func (c *Client) FreshVolume(ctx context.Context, set jobspecs.Key, r FreshVolumeRequest) (Result, error) {
	return post[Result](ctx, c, setPath(set, "fresh-volume"), r)
}

// SetImage overrides images.
func (c *Client) SetImage(ctx context.Context, set jobspecs.Key, r ImageRequest) (Result, error) {
	return post[Result](ctx, c, setPath(set, "image"), r)
}

// Rollout undoes, pauses, resumes or restarts a rollout.
func (c *Client) Rollout(ctx context.Context, set jobspecs.Key, r RolloutRequest) (Result, error) {
	return post[Result](ctx, c, setPath(set, "rollout"), r)
}

// Delete accepts the end of a set; it is gone when Status says ProblemNotFound.
func (c *Client) Delete(ctx context.Context, set jobspecs.Key, r DeleteRequest) (Result, error) {
	return post[Result](ctx, c, setPath(set, "delete"), r)
}

// Sets lists the sets of a namespace, or of all when it is "".
func (c *Client) Sets(ctx context.Context, namespace string) ([]jobspecs.SetRow, error) {
	return get[[]jobspecs.SetRow](ctx, c, "/v1/sets", optional("namespace", namespace))
}

// Members lists the members of a namespace, or of all when it is "".
func (c *Client) Members(ctx context.Context, namespace string) ([]jobspecs.Member, error) {
	return get[[]jobspecs.Member](ctx, c, "/v1/members", optional("namespace", namespace))
}

// Status is the status of a set.
func (c *Client) Status(ctx context.Context, set jobspecs.Key) (jobspecs.Status, error) {
	return get[jobspecs.Status](ctx, c, setPath(set, ""), nil)
}

// History lists the revisions of a set, oldest first.
func (c *Client) History(ctx context.Context, set jobspecs.Key) ([]jobspecs.HistoryRow, error) {
	return get[[]jobspecs.HistoryRow](ctx, c, setPath(set, "history"), nil)
}

// Source is what was last applied.
func (c *Client) Source(ctx context.Context, set jobspecs.Key) (StoredSource, error) {
	return get[StoredSource](ctx, c, setPath(set, "source"), nil)
}

// Secrets lists the generated secrets of a namespace, or of all when it is "".
func (c *Client) Secrets(ctx context.Context, namespace string) ([]Secret, error) {
	return get[[]Secret](ctx, c, "/v1/secrets", optional("namespace", namespace))
}

// RemoveSecret forgets a secret; ProblemUnconfirmed while a set uses it.
func (c *Client) RemoveSecret(ctx context.Context, namespace, name string, r SecretRequest) (SecretResult, error) {
	return post[SecretResult](ctx, c, "/v1/secrets/"+url.PathEscape(namespace)+"/"+url.PathEscape(name)+"/delete", r)
}

// Explain is the chain of reasons for a member's state.
func (c *Client) Explain(ctx context.Context, namespace, member string) (jobspecs.Explanation, error) {
	return get[jobspecs.Explanation](ctx, c, memberPath(namespace, member, "explain"), nil)
}

// Version tells which daemon answers.
func (c *Client) Version(ctx context.Context) (Version, error) {
	return get[Version](ctx, c, "/v1/version", nil)
}

// Ready is nil when the daemon's engine answers.
func (c *Client) Ready(ctx context.Context) error {
	resp, err := c.send(ctx, http.MethodGet, "/readyz", nil, nil, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// EventQuery selects events.
type EventQuery struct {
	Namespace, Set, Member string // "" is any
	Since                  time.Time
	Follow                 bool
}

// Events calls each for every event, oldest first. Following goes on until ctx
// ends or the daemon does (ErrStreamEnded).
func (c *Client) Events(ctx context.Context, q EventQuery, each func(jobspecs.Event) error) error {
	v := optional("namespace", q.Namespace, "set", q.Set, "member", q.Member)
	if !q.Since.IsZero() {
		v.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	if q.Follow {
		v.Set("watch", "true")
	}
	err := lines(ctx, c, "/v1/events", v, each)
	if errors.Is(err, ErrStreamEnded) && !q.Follow {
		return nil
	}
	return err
}

// ErrStreamEnded is returned by streams that go on for ever when the daemon
// closed them: it stops, or it died. Open them again.
var ErrStreamEnded = errors.New("the daemon closed the stream")

// WatchStatus calls each with the status now and after every change, until ctx
// ends or each fails. A set that is gone ends it with ProblemNotFound, a daemon
// that stops with ErrStreamEnded. Every line is the whole status: opened again,
// a watch goes on where the first one stopped.
func (c *Client) WatchStatus(ctx context.Context, set jobspecs.Key, each func(jobspecs.Status) error) error {
	return lines(ctx, c, setPath(set, ""), url.Values{"watch": {"true"}}, each)
}

func setPath(set jobspecs.Key, verb string) string {
	return joinPath("/v1/sets", set.Namespace, set.Name, verb)
}

func memberPath(namespace, member, verb string) string {
	return joinPath("/v1/members", namespace, member, verb)
}

func joinPath(base string, parts ...string) string {
	for _, p := range parts {
		if p != "" {
			base += "/" + url.PathEscape(p)
		}
	}
	return base
}

// optional makes query values of key, value pairs, without the empty ones.
func optional(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

func post[Out any](ctx context.Context, c *Client, path string, in any) (Out, error) {
	var out Out
	body, err := json.Marshal(in)
	if err != nil {
		return out, fmt.Errorf("encode the request: %w", err)
	}
	resp, err := c.send(ctx, http.MethodPost, path, nil, bytes.NewReader(body), nil)
	if err != nil {
		return out, err
	}
	return out, decode(resp, &out)
}

func get[Out any](ctx context.Context, c *Client, path string, q url.Values) (Out, error) {
	var out Out
	resp, err := c.send(ctx, http.MethodGet, path, q, nil, nil)
	if err != nil {
		return out, err
	}
	return out, decode(resp, &out)
}

func decode(resp *http.Response, out any) error {
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read the answer to %s: %w", resp.Request.URL.Path, err)
	}
	return nil
}

// send returns an answer that is no error; its body is the caller's to close.
func (c *Client) send(ctx context.Context, method, path string, q url.Values, body io.Reader, header http.Header) (*http.Response, error) {
	u := "http://stsd" + path
	if len(q) > 0 {
		u += "?" + q.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, u, body)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", path, err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, withoutURL(err)
	}
	if resp.StatusCode < 400 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, problemOf(resp)
}

// withoutURL drops the made-up address "http://stsd/…" that net/http adds.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// problemLimit is far more than any problem needs, in bytes.
const problemLimit = 16 << 20

func problemOf(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, problemLimit))
	if err != nil {
		return fmt.Errorf("read the answer to %s: %w", resp.Request.URL.Path, err)
	}
	if p := asProblem(b); p != nil {
		return p
	}
	return fmt.Errorf("%s answered %s: %s", resp.Request.URL.Path, resp.Status, bytes.TrimSpace(b[:min(len(b), 200)]))
}

// asProblem is the problem that b holds, or nil.
func asProblem(b []byte) *Problem {
	var p Problem
	if json.Unmarshal(b, &p) != nil || !strings.HasPrefix(p.Type, "urn:stsd:") {
		return nil
	}
	return &p
}
