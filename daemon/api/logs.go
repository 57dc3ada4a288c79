package api

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/stsd/stsd/daemon/client"
	"github.com/stsd/stsd/runtime"
)

var logParams = []param{
	{"follow", "boolean", "go on with what is written from now"},
	{"tail", "string", `number of lines from the end, or "all"`},
	{"since", "date-time", "lines at or after"},
	{"timestamps", "boolean", "put the time before each line"},
	{"previous", "boolean", "of the last ended container"},
	{"container", "string", "absent: the main one"},
}

func logs(s *Server, w http.ResponseWriter, r *http.Request) error {
	name, err := podOf(r)
	if err != nil {
		return err
	}
	o, err := logOptions(r)
	if err != nil {
		return err
	}
	out := &flusher{w: w}
	frames := client.NewFrameWriter(out)
	err = s.Service.Logs(r.Context(), name, o, frames.Stream(client.FrameStdout), frames.Stream(client.FrameStderr))
	switch {
	case err != nil && !out.begun:
		return err
	case err != nil:
		_ = sendError(frames, err) // nobody is left to tell
	default:
		_ = frames.Frame(client.FrameEnd, nil) // nobody is left to tell
	}
	return nil
}

func logOptions(r *http.Request) (runtime.LogOptions, error) {
	v := r.URL.Query()
	o := runtime.LogOptions{Tail: v.Get("tail"), Container: v.Get("container")}
	if _, err := strconv.ParseUint(o.Tail, 10, 31); err != nil && o.Tail != "all" && o.Tail != "" {
		return o, invalid("tail=%q: want a number of lines, or all", o.Tail)
	}
	if o.Tail == "" {
		o.Tail = "all"
	}
	var err error
	if o.Since, err = moment(r, "since"); err != nil {
		return o, err
	}
	for name, into := range map[string]*bool{"follow": &o.Follow, "timestamps": &o.Timestamps, "previous": &o.Previous} {
		if *into, err = flag(r, name); err != nil {
			return o, err
		}
	}
	return o, nil
}

func sendError(f *client.FrameWriter, err error) error {
	p, err := json.Marshal(problemOf(err))
	if err != nil {
		return err
	}
	return f.Frame(client.FrameError, p)
}

// flusher sends every frame at once. Until the first one the answer can still
// become a problem.
type flusher struct {
	w     http.ResponseWriter
	begun bool
}

var _ io.Writer = (*flusher)(nil)

func (f *flusher) Write(p []byte) (int, error) {
	if !f.begun {
		f.w.Header().Set("Content-Type", client.FramesType)
	}
	f.begun = true
	n, err := f.w.Write(p)
	if err != nil {
		return n, err
	}
	return n, http.NewResponseController(f.w).Flush()
}
