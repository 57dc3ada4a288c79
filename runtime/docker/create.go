package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"github.com/stsd/stsd/jobspecs"
	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// createTime bounds one create call. It is not cut short by the caller's ctx: an
// engine goes on with a create whose caller hung up, and then nobody would know
// of the container.
const createTime = 2 * time.Minute

// Create makes the container. What the engine made before a failure is removed.
func (h *Host) Create(ctx context.Context, spec pods.ContainerSpec) (id string, err error) {
	if isSandbox(&spec) {
		spec.Main = sandboxOf(&spec.Pod)
	}
	spec.Main.Mounts = cleanMounts(spec.Main.Mounts)
	if err := h.checkCreate(ctx, &spec); err != nil {
		return "", err
	}
	done, err := h.slot(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	around, err := h.surround(ctx, &spec)
	if err != nil {
		return "", err
	}
	if err := h.prepareVolumes(ctx, &spec, &around); err != nil {
		return "", err
	}
	if !h.remote && !h.blind.Load() {
		defer h.resolvers.look()()
		if around.resolvConf, err = h.resolvers.begin(&spec.Pod); err != nil {
			return "", err
		}
		defer func() { h.resolvers.end(&spec.Pod, id) }()
	}
	id, err = h.createWithFiles(ctx, spec, around)
	if errors.Is(err, errBlind) {
		h.blind.Store(true)
		around.resolvConf = ""
		id, err = h.createWithFiles(ctx, spec, around)
	}
	if err != nil {
		return id, err
	}
	if err := h.volumes.whole(ctx, id, &spec); err != nil {
		return "", err
	}
	if !around.subpaths {
		h.watchFolders(id, &spec, around.folders)
	}
	return id, nil
}

// checkCreate refuses what cannot become a container, and makes the pod's own network.
func (h *Host) checkCreate(ctx context.Context, spec *pods.ContainerSpec) error {
	if err := checkMounts(spec); err != nil {
		return err
	}
	user := userOf(spec)
	if who, ok := numericIdentity(user); ok && spec.Main.RunAsNonRoot {
		if err := refuseRoot(spec.Main.Name, user, who, true); err != nil {
			return err
		}
	}
	for _, m := range spec.Main.Mounts {
		if !isClaim(m) {
			continue
		}
		if err := h.volumes.mountable(ctx, m.Volume); err != nil {
			return err
		}
	}
	if spec.Sandbox != "" { // the network is its
		return nil
	}
	if err := h.checkJoined(ctx, &spec.Pod); err != nil {
		return err
	}
	return h.ensureNetwork(ctx, &spec.Pod)
}

// surround collects the facts that a request depends on.
func (h *Host) surround(ctx context.Context, spec *pods.ContainerSpec) (around surroundings, err error) {
	around = surroundings{daemon: h.cfg.Daemon, subpaths: h.mountsFolders(ctx)}
	if around.gpus, err = gpusOf(spec.Main.GPUs); err != nil {
		return around, err
	}
	if around.image, err = h.imageName(ctx, spec); err != nil {
		return around, err
	}
	around.log, err = h.logConfig(ctx)
	return around, err
}

// userOf is whom the container runs as: what the spec says, else the image. ""
// is root.
func userOf(spec *pods.ContainerSpec) string { return cmp.Or(spec.Main.User, spec.Image.User) }

// prepareVolumes makes what must be there before a container mounts it.
func (h *Host) prepareVolumes(ctx context.Context, spec *pods.ContainerSpec, around *surroundings) error {
	fresh, err := h.ensureScratch(ctx, spec)
	if err != nil {
		return err
	}
	if err := h.openScratch(ctx, spec, fresh); err != nil {
		return err
	}
	if err := h.fill(ctx, spec, around.image); err != nil {
		return err
	}
	around.folders, err = h.ensureFolders(ctx, spec, around)
	return err
}

func (h *Host) createWithFiles(ctx context.Context, spec pods.ContainerSpec, around surroundings) (id string, err error) {
	owner, err := h.fileOwner(ctx, &spec, around.image)
	if err != nil {
		return "", known(runtime.ReasonCreateFailed, err, "create container %s", spec.Name)
	}
	files, err := h.placeFiles(&spec, owner, around.resolvConf != "")
	if err != nil {
		return "", known(runtime.ReasonCreateFailed, err, "create container %s", spec.Name)
	}
	around.bound = files.bound
	id, err = h.createContainer(ctx, spec, around)
	if err != nil {
		return "", err
	}
	if err = ctx.Err(); err == nil && spec.Sandbox == "" {
		err = h.join(ctx, id, &spec.Pod)
	}
	if err == nil {
		err = h.putFiles(ctx, id, files.put, owner)
	}
	if err == nil {
		err = h.settleUser(ctx, id, &spec)
	}
	if err != nil {
		return "", errors.Join(known(runtime.ReasonCreateFailed, err, "create container %s", spec.Name), h.undo(ctx, id))
	}
	return id, nil
}

// settleUser does what needs to know whom the created container runs as.
func (h *Host) settleUser(ctx context.Context, id string, spec *pods.ContainerSpec) error {
	user, fresh := userOf(spec), freshVolumes(spec)
	if !spec.Main.RunAsNonRoot && len(fresh) == 0 {
		return nil
	}
	who, ok, err := h.identify(ctx, id, user)
	if err != nil {
		return err
	}
	if spec.Main.RunAsNonRoot {
		if err := refuseRoot(spec.Main.Name, user, who, ok); err != nil {
			return err
		}
	}
	to := ownership{group: groupOf(&spec.Pod)}
	switch user, known := laterUser(spec, fresh); {
	case ok && who.uid != 0:
		to.user = &who
	case known:
		to.user = &user
	}
	if len(fresh) == 0 || to == (ownership{}) {
		return nil
	}
	return h.within(ctx, spec, fresh, func(in *inside) error {
		for n := range fresh {
			if err := in.give(ctx, n, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// laterUser is whom a main or sidecar runs as that mounts one of the volumes, where
// the container that comes first, mostly an init container, is root: the volume is
// made for those that last. Only numbers are known before that container is made.
func laterUser(spec *pods.ContainerSpec, fresh []string) (identity, bool) {
	for i := range spec.Pod.Containers {
		c := &spec.Pod.Containers[i]
		mounts := slices.ContainsFunc(c.Mounts, func(m jobspecs.Mount) bool { return isClaim(m) && slices.Contains(fresh, m.Volume) && !m.ReadOnly })
		if who, ok := numericIdentity(c.User); ok && who.uid != 0 && mounts && c.Kind != jobspecs.KindInit {
			return who, true
		}
	}
	return identity{}, false
}

// freshVolumes are those that the container mounts of the pod's fresh ones.
func freshVolumes(spec *pods.ContainerSpec) []string {
	var names []string
	for _, name := range spec.Fresh {
		if slices.ContainsFunc(spec.Main.Mounts, func(m jobspecs.Mount) bool { return isClaim(m) && m.Volume == name }) {
			names = append(names, name)
		}
	}
	return names
}

// errBlind says that the engine does not see our folder, which is there: a local
// socket leads to another machine, or into another mount namespace.
var errBlind = errors.New("the engine does not see our files")

func (h *Host) createContainer(ctx context.Context, spec pods.ContainerSpec, around surroundings) (id string, err error) {
	whole, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTime)
	defer cancel()
	r := newRequest(spec, around)
	made, err := h.cli().ContainerCreate(whole, r.config, r.host, r.network, nil, r.name)
	switch {
	case err == nil:
		return made.ID, nil
	case isConflict(err) && contains(err.Error(), "name"):
		return h.holder(whole, spec, r)
	case contains(err.Error(), `invalid mount config for type "bind"`):
		return "", h.missingSource(&spec, around, err)
	case spec.Sandbox != "" && sandboxGone(err.Error(), ""):
		return "", errSandboxGone()
	case isNotFound(err) && contains(err.Error(), "network"):
		h.networks.forget()
	}
	return "", h.createRefused(&spec, r.host, err)
}

// createRefused says what of a spec an engine does not make a container with.
func (h *Host) createRefused(spec *pods.ContainerSpec, asked *container.HostConfig, cause error) error {
	text := cause.Error()
	if contains(text, "no command specified") {
		return problem(runtime.ReasonBadCommand, nil, "image %s has no entrypoint and no command: set command or args", spec.Main.Image)
	}
	if reason := createReason(text); reason != runtime.ReasonCreateFailed {
		return known(reason, cause, "create container %s", spec.Name)
	}
	return refused(cause, asked, "create container %s", spec.Name)
}

// missingSource tells whose path the engine did not find: one of the spec, or a
// file of ours, which is there.
func (h *Host) missingSource(spec *pods.ContainerSpec, around surroundings, cause error) error {
	text := cause.Error()
	for _, m := range spec.Main.Mounts {
		if source := path.Join(m.Source, m.SubPath); m.Kind == jobspecs.MountBind && strings.Contains(text, source) {
			return problem(runtime.ReasonCreateFailed, nil,
				"bind %s: %s is not there on the engine's host (mounted at %s)", m.Claim, source, m.Path)
		}
	}
	switch {
	case around.resolvConf != "" && strings.Contains(text, h.resolvers.dir):
		return fmt.Errorf("create container %s: %w", spec.Name, errBlind)
	case slices.ContainsFunc(around.bound, func(m mount.Mount) bool { return strings.Contains(text, m.Source) }):
		return problem(runtime.ReasonNoMemoryFolder, nil, "the engine does not see our folder in memory: %s", engineError(cause))
	}
	return known(runtime.ReasonCreateFailed, cause, "create container %s", spec.Name)
}

// holder says who has the container's name. When it is the very container that
// was asked for, the reply to an earlier call was lost, and it is the answer.
func (h *Host) holder(ctx context.Context, spec pods.ContainerSpec, r request) (id string, err error) {
	c, err := h.cli().ContainerInspect(ctx, spec.Name)
	if isNotFound(err) {
		return "", problem(runtime.ReasonWaitingForFence, nil, "container name %s was taken a moment ago", spec.Name)
	}
	if err != nil {
		return "", fmt.Errorf("inspect container %s: %w", spec.Name, engineError(err))
	}
	labels := c.Config.Labels
	switch {
	case !h.ours(labels):
		return "", problem(runtime.ReasonNameTaken, nil, "container name %s is taken by %s, which is left alone",
			spec.Name, h.describe(shortID(c.ID), c.Config.Image, labels))
	case c.State.Status == container.StateCreated && sameLabels(labels, r.config.Labels):
		return c.ID, nil
	}
	return "", problem(runtime.ReasonWaitingForFence, nil, "container %s of an earlier start is still there (%s)", spec.Name, c.State.Status)
}

// sameLabels compares what tells two containers of a pod apart.
func sameLabels(a, b map[string]string) bool {
	for _, k := range []string{
		jobspecs.LabelNamespace, jobspecs.LabelSet, jobspecs.LabelOrdinal, jobspecs.LabelContainer,
		jobspecs.LabelKind, jobspecs.LabelSandbox, jobspecs.LabelRevision, jobspecs.LabelRendering, jobspecs.LabelRestarts,
	} {
		if a[k] != b[k] {
			return false
		}
	}
	return true
}

// undo removes a container that could not be finished, even when ctx has ended.
func (h *Host) undo(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	err := h.cli().ContainerRemove(ctx, id, container.RemoveOptions{RemoveVolumes: true})
	if err != nil && !isNotFound(err) {
		return fmt.Errorf("remove the unfinished container: %w", engineError(err))
	}
	return nil
}

// imageName is the image's name while it still means the resolved image, so that
// docker ps shows it, else the id.
func (h *Host) imageName(ctx context.Context, spec *pods.ContainerSpec) (string, error) {
	if spec.Main.Image == spec.Image.ID {
		return spec.Image.ID, nil
	}
	found, err := h.cli().ImageInspect(ctx, spec.Main.Image)
	if err != nil && !isNotFound(err) {
		return "", fmt.Errorf("inspect image %s: %w", spec.Main.Image, engineError(err))
	}
	if err == nil && (spec.Image.ID == "" || found.ID == spec.Image.ID) {
		return spec.Main.Image, nil
	}
	return spec.Image.ID, nil
}

// defaultLog is what a container logs to when its spec does not say.
type defaultLog struct {
	mu     sync.Mutex
	known  bool
	config container.LogConfig
}

func (d *defaultLog) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = false
}

// logConfig limits logs to 3 files of 10 MB where the engine would let them grow
// for ever: its driver is json-file and nobody gave it limits.
func (h *Host) logConfig(ctx context.Context) (container.LogConfig, error) {
	d := &h.logs
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known {
		return d.config, nil
	}
	info, err := h.cli().Info(ctx)
	if err != nil {
		return container.LogConfig{}, fmt.Errorf("ask for the engine's log driver: %w", engineError(err))
	}
	d.config, d.known = container.LogConfig{}, true
	if info.LoggingDriver == "json-file" && (h.remote || !logLimits("/etc/docker/daemon.json")) {
		d.config = container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m", "max-file": "3"}}
	}
	return d.config, nil
}

// logLimits tells whether the engine's configuration limits logs by itself.
func logLimits(path string) bool {
	text, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	var conf struct {
		LogOpts map[string]any `json:"log-opts"`
	}
	return json.Unmarshal(text, &conf) == nil && conf.LogOpts["max-size"] != nil
}

func shortID(id string) string { return id[:min(12, len(id))] }
