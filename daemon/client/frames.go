package client

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// FramesType is the media type of a stream of frames. A frame is one byte of
// kind, four bytes of length (big endian) and that many bytes. Logs are frames
// of kind stdout and stderr and, at their proper end, one of kind end.
const FramesType = "application/vnd.stsd.frames"

// ExecProtocol is what the connection of exec is upgraded to: frames both ways.
// The client sends stdin, stdin-end and resize, the daemon stdout and stderr and
// at last either exit or error.
const ExecProtocol = "stsd-exec/1"

// Kinds of a frame, a closed list.
const (
	FrameStdin    byte = 0
	FrameStdout   byte = 1
	FrameStderr   byte = 2
	FrameExit     byte = 3 // JSON: {"code": 0}
	FrameError    byte = 4 // JSON: a Problem
	FrameResize   byte = 5 // JSON: {"rows": 24, "columns": 80}
	FrameStdinEnd byte = 6 // empty
	FrameEnd      byte = 7 // empty
)

// Exit is the payload of FrameExit.
type Exit struct {
	Code int `json:"code"`
}

// Resize is the payload of FrameResize.
type Resize struct {
	Rows    uint `json:"rows"`
	Columns uint `json:"columns"`
}

const (
	maxFrame  = 1 << 20  // bytes of payload that a reader accepts
	sendFrame = 32 << 10 // bytes of payload that a writer puts into one
)

// FrameWriter writes frames. It is safe for concurrent use.
type FrameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// NewFrameWriter writes to w, one Write per frame.
func NewFrameWriter(w io.Writer) *FrameWriter { return &FrameWriter{w: w} }

// Frame writes p as one frame, or as several when it is long.
func (f *FrameWriter) Frame(kind byte, p []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		n := min(len(p), sendFrame)
		b := append([]byte{kind}, binary.BigEndian.AppendUint32(nil, uint32(n))...)
		if _, err := f.w.Write(append(b, p[:n]...)); err != nil {
			return err
		}
		if p = p[n:]; len(p) == 0 {
			return nil
		}
	}
}

// Stream is a writer whose output becomes frames of one kind.
func (f *FrameWriter) Stream(kind byte) io.Writer { return frameStream{f, kind} }

type frameStream struct {
	f    *FrameWriter
	kind byte
}

func (s frameStream) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := s.f.Frame(s.kind, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// ReadFrame reads one frame. The end of r between two frames is io.EOF.
func ReadFrame(r io.Reader) (kind byte, payload []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes: more than %d", n, maxFrame)
	}
	payload = make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return head[0], payload, nil
}
