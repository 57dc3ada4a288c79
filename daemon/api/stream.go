package api

import (
	"context"
	"net/http"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/jobspecs"
)

// linesType is the media type of one JSON document a line.
const linesType = "application/x-ndjson"

// startLines sends the head of a stream at once: a watch may have nothing to
// say for a long time.
func startLines(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", linesType)
	w.WriteHeader(http.StatusOK)
	return http.NewResponseController(w).Flush()
}

// line sends one document. Its error is that the caller went away.
func line(w http.ResponseWriter, v any) error {
	if err := writeJSON(w, v); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// endLines makes err the last line of a stream.
func endLines(w http.ResponseWriter, r *http.Request, err error) error {
	if err == nil || r.Context().Err() != nil {
		return nil
	}
	_ = line(w, problemOf(err)) // nobody is left to tell
	return nil
}

func status(s *Server, w http.ResponseWriter, r *http.Request) error {
	watch, err := flag(r, "watch")
	if err != nil {
		return err
	}
	if !watch {
		return ofSet(Service.Status)(s, w, r)
	}
	set, err := setOf(r)
	if err != nil {
		return err
	}
	changes, err := s.Service.WatchStatus(r.Context(), set)
	if err != nil {
		return err
	}
	return endLines(w, r, sendStatus(r.Context(), w, set, changes))
}

func sendStatus(ctx context.Context, w http.ResponseWriter, set jobspecs.Key, changes <-chan jobspecs.Status) error {
	if err := startLines(w); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case st, ok := <-changes:
			if !ok {
				return &client.Problem{Type: client.ProblemNotFound, Title: "set " + set.String() + " is gone", Set: set.Name}
			}
			if err := line(w, st); err != nil {
				return err
			}
		}
	}
}

var eventParams = []param{
	namespaceParam,
	{"set", "string", "of one set"},
	{"member", "string", "of one member"},
	{"since", "date-time", "at or after; to resume, the time of the last line seen"},
	{"watch", "boolean", "go on with those that happen from now"},
}

func events(s *Server, w http.ResponseWriter, r *http.Request) error {
	q, err := eventQuery(r)
	if err != nil {
		return err
	}
	if q.Follow {
		if err := startLines(w); err != nil {
			return err
		}
	}
	sent := q.Follow
	err = s.Service.Events(r.Context(), q, func(e jobspecs.Event) error {
		if !sent {
			w.Header().Set("Content-Type", linesType)
		}
		sent = true
		if q.Follow {
			return line(w, e)
		}
		return writeJSON(w, e)
	})
	if err != nil && !sent {
		return err
	}
	if !sent {
		w.Header().Set("Content-Type", linesType)
	}
	return endLines(w, r, err)
}

func eventQuery(r *http.Request) (EventQuery, error) {
	v := r.URL.Query()
	q := EventQuery{Namespace: v.Get("namespace"), Set: v.Get("set"), Member: v.Get("member")}
	var err error
	if q.Since, err = moment(r, "since"); err != nil {
		return q, err
	}
	q.Follow, err = flag(r, "watch")
	return q, err
}
