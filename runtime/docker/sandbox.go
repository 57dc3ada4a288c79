package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	program "github.com/stsd/stsd/runtime/docker/pause"
	"github.com/stsd/stsd/runtime/pods"
)

// sandboxImage is the name of the one image that stsd makes. Its number grows
// with its content.
const sandboxImage = "stsd/sandbox:1"

// labelImage is on the image, and so on every container of it: it is none of the
// labels that say what a container is.
const labelImage = "stsd.image"

// sandboxes makes the image once, however many pods ask for it.
type sandboxes struct {
	turn sync.Mutex
	name string // sandboxImage; the tests' own, where they remove it
}

// SandboxImage is the image of the sandboxes, for the engine's architecture. One
// that somebody removed is made again.
func (h *Host) SandboxImage(ctx context.Context) (pods.Image, error) {
	done, err := h.slot(ctx)
	if err != nil {
		return pods.Image{}, err
	}
	defer done()
	return h.findSandboxImage(ctx)
}

func (h *Host) findSandboxImage(ctx context.Context) (pods.Image, error) {
	h.sandboxes.turn.Lock()
	defer h.sandboxes.turn.Unlock()
	found, err := h.cli().ImageInspect(ctx, h.sandboxes.name)
	if isNotFound(err) {
		if err = h.loadSandboxImage(ctx); err == nil {
			found, err = h.cli().ImageInspect(ctx, h.sandboxes.name)
		}
	}
	if err != nil {
		return pods.Image{}, known(runtime.ReasonCreateFailed, err, "make image %s", h.sandboxes.name)
	}
	if found.Config == nil || found.Config.Labels[labelImage] == "" {
		return pods.Image{}, problem(runtime.ReasonCreateFailed, nil, "image %s exists and was not made by stsd: remove or rename it", h.sandboxes.name)
	}
	return imageOf(&found), nil
}

func (h *Host) loadSandboxImage(ctx context.Context) error {
	engine, err := h.cli().ServerVersion(ctx)
	if err != nil {
		return fmt.Errorf("ask for the engine's architecture: %w", engineError(err))
	}
	archive, err := sandboxArchive(engine.Arch, h.sandboxes.name)
	if err != nil {
		return err
	}
	reply, err := h.cli().ImageLoad(ctx, bytes.NewReader(archive), client.ImageLoadWithQuiet(true))
	if err != nil {
		return engineError(err)
	}
	defer reply.Body.Close()
	return loaded(reply)
}

// loaded reads what the engine says of a load: an error may stand in the middle.
func loaded(reply image.LoadResponse) error {
	if !reply.JSON {
		_, err := io.Copy(io.Discard, reply.Body)
		return err
	}
	for dec := json.NewDecoder(reply.Body); ; {
		var line struct {
			Error string `json:"error"`
		}
		if err := dec.Decode(&line); err == io.EOF {
			return nil
		} else if err != nil {
			return engineError(err)
		}
		if line.Error != "" {
			return fmt.Errorf("load: %s", line.Error)
		}
	}
}

// sandboxArchive is the image as docker save would write it. The same
// architecture gives the same bytes, and so the same image id.
func sandboxArchive(arch, name string) ([]byte, error) {
	elf, ok := program.ELF(arch)
	if !ok {
		return nil, problem(runtime.ReasonWrongPlatform, nil,
			"the engine runs on %s: pods whose containers share something work on amd64 and arm64", arch)
	}
	layer, err := pack(packed{"sandbox", elf, 0o755})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": arch,
		"os":           "linux",
		"created":      time.Unix(0, 0).UTC(),
		"config": map[string]any{
			"Entrypoint": []string{"/sandbox"},
			"User":       "65535:65535",
			"Labels":     map[string]string{labelImage: jobspecs.PartSandbox},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer)}},
		"history": []map[string]any{{"created": time.Unix(0, 0).UTC(), "created_by": "stsd"}},
	})
	if err != nil {
		return nil, fmt.Errorf("describe image %s: %w", name, err)
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config":   sum(config) + ".json",
		"RepoTags": []string{name},
		"Layers":   []string{"layer.tar"},
	}})
	if err != nil {
		return nil, fmt.Errorf("describe image %s: %w", name, err)
	}
	return pack(packed{"layer.tar", layer, 0o644}, packed{sum(config) + ".json", config, 0o644}, packed{"manifest.json", manifest, 0o644})
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// packed is one file of an archive.
type packed struct {
	name    string
	content []byte
	mode    int64
}

func pack(files ...packed) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		head := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(head); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.name, err)
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, fmt.Errorf("pack %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	return b.Bytes(), nil
}

// isSandbox tells whether the sandbox itself is to be made.
func isSandbox(spec *pods.ContainerSpec) bool { return spec.Main.Kind == jobspecs.KindSandbox }

// shared tells whether the container is one of a sandboxed pod, or its sandbox.
func shared(spec *pods.ContainerSpec) bool { return isSandbox(spec) || spec.Sandbox != "" }

// sandboxOf is the sandbox's container, from all that the pod's others ask for:
// what belongs to the network and the host name is the sandbox's.
func sandboxOf(pod *jobspecs.PodSpec) jobspecs.Container {
	c := jobspecs.Container{
		Kind:            jobspecs.KindSandbox,
		Name:            jobspecs.PartSandbox,
		Image:           sandboxImage,
		ReadOnlyRoot:    true,
		NoNewPrivileges: true,
		CapDrop:         []string{"ALL"},
		Log:             &jobspecs.Log{Driver: "none"},
	}
	for i := range pod.Containers {
		c.Ports = append(c.Ports, pod.Containers[i].Ports...)
		c.ShmSize = max(c.ShmSize, pod.Containers[i].ShmSize)
	}
	for _, s := range pod.Scratch {
		if s.Medium == jobspecs.MediumMemory {
			c.Mounts = append(c.Mounts, jobspecs.Mount{Kind: jobspecs.MountScratch, Claim: s.Name, Path: "/scratch/" + s.Name})
		}
	}
	return c
}

// sandboxGrace is how long the engine's own stop waits for a sandbox, which ends
// at once.
const sandboxGrace = time.Second

// sandboxGone tells whether the engine could not join a sandbox: it has ended, or it is no longer there. container is the one that was to join;
// its own absence is something else.
func sandboxGone(text, container string) bool {
	if contains(text, "no such container") {
		return container == "" || !strings.Contains(text, container)
	}
	return contains(text, "cannot join ", "can't join ", "joining network namespace", "joining pid namespace", "joining ipc namespace")
}

// errSandboxGone is what Create and Start say then.
func errSandboxGone() error {
	return problem(runtime.ReasonSandbox, nil, "the sandbox to join has ended")
}
