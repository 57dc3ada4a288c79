// Package api is the HTTP face of the daemon: handlers, streams and the
// document that describes them. It decides nothing; Service does.
package api

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
)

// Service is what the handlers call. Its errors are *client.Problem where the
// caller can do something about them; any other error is an internal one.
type Service interface {
	Apply(ctx context.Context, r client.ApplyRequest) (client.ApplyResponse, error)
	Plan(ctx context.Context, r client.ApplyRequest) (client.PlanResponse, error)
	Scale(ctx context.Context, set jobspecs.Key, r client.ScaleRequest) (client.Result, error)
	SetImage(ctx context.Context, set jobspecs.Key, r client.ImageRequest) (client.Result, error)
	Rollout(ctx context.Context, set jobspecs.Key, r client.RolloutRequest) (client.Result, error)
	ChangeMembers(ctx context.Context, set jobspecs.Key, r client.MembersRequest) (client.Result, error)
	FreshVolume(ctx context.Context, set jobspecs.Key, r client.FreshVolumeRequest) (client.Result, error)
	Delete(ctx context.Context, set jobspecs.Key, r client.DeleteRequest) (client.Result, error)

	// Sets lists the sets of a namespace, or of all when namespace is "".
	Sets(ctx context.Context, namespace string) ([]jobspecs.SetRow, error)
	Status(ctx context.Context, set jobspecs.Key) (jobspecs.Status, error)
	// WatchStatus gives the status now and after each change until ctx ends or
	// the set is gone (the channel closes). Slow readers see the newest only.
	WatchStatus(ctx context.Context, set jobspecs.Key) (<-chan jobspecs.Status, error)
	Members(ctx context.Context, namespace string) ([]jobspecs.Member, error)
	History(ctx context.Context, set jobspecs.Key) ([]jobspecs.HistoryRow, error)
	Source(ctx context.Context, set jobspecs.Key) (client.StoredSource, error)
	// Secrets lists generated secrets, without their values.
	Secrets(ctx context.Context, namespace string) ([]client.Secret, error)
	RemoveSecret(ctx context.Context, namespace, name string, r client.SecretRequest) (client.SecretResult, error)
	Explain(ctx context.Context, namespace, member string) (jobspecs.Explanation, error)
	// Events are those stored, oldest first, at or after since; set "" is all.
	// Following goes on until ctx ends.
	Events(ctx context.Context, q EventQuery, each func(jobspecs.Event) error) error

	Logs(ctx context.Context, name runtime.PodName, o runtime.LogOptions, stdout, stderr io.Writer) error
	Exec(ctx context.Context, name runtime.PodName, o runtime.ExecOptions) (int, error)

	// DNS tells what is answered now, to whom and why.
	DNS(ctx context.Context, q client.DNSQuery) (client.DNS, error)
	// TraceDNS gives every question from now on to each until ctx ends; start is
	// called once it begins. name "" is any.
	TraceDNS(ctx context.Context, name string, start func() error, each func(client.DNSTraced) error) error

	// Metrics serves everything that is counted, as Prometheus reads it.
	Metrics() http.Handler

	Version(ctx context.Context) client.Version
	// Ready tells whether the engine answers.
	Ready() error
}

// EventQuery selects events.
type EventQuery struct {
	Namespace, Set, Member string // "" is any
	Since                  time.Time
	Follow                 bool
}
