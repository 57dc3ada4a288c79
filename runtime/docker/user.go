package docker

import (
	"archive/tar"
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/stsd/stsd/runtime"
	"github.com/stsd/stsd/runtime/pods"
)

// identity is whom a container runs as. A gid of -1 is not known.
type identity struct{ uid, gid int }

// numericIdentity reads "", "UID", "UID:GID" and "UID:group". A user without a
// group is not known to be in any: the image may say.
func numericIdentity(user string) (_ identity, ok bool) {
	u, g, _ := strings.Cut(user, ":")
	if u == "" {
		u = "0"
	}
	uid, err := strconv.Atoi(u)
	if err != nil || uid < 0 {
		return identity{}, false
	}
	gid, err := strconv.Atoi(g)
	if err != nil || gid < 0 {
		gid = -1
	}
	return identity{uid, gid}, true
}

// identify resolves a name with the container's own /etc/passwd; ok is false when
// it does not have it.
func (h *Host) identify(ctx context.Context, id, user string) (_ identity, ok bool, err error) {
	if who, ok := numericIdentity(user); ok {
		return who, true, nil
	}
	name, group, _ := strings.Cut(user, ":")
	passwd, err := h.readSmall(ctx, id, "/etc/passwd")
	if err != nil {
		return identity{}, false, err
	}
	who, ok := lookUser(passwd, name)
	if gid, err := strconv.Atoi(group); group != "" {
		who.gid = gid
		if err != nil || gid < 0 {
			who.gid = -1
		}
	}
	return who, ok, nil
}

// identifyEarly is identify before there is a container: where it takes a name, one
// of the image is made to read it from.
func (h *Host) identifyEarly(ctx context.Context, spec *pods.ContainerSpec, image string) (who identity, ok bool, err error) {
	user := userOf(spec)
	if who, ok := numericIdentity(user); ok {
		return who, true, nil
	}
	err = h.reach(ctx, spec, image, nil, func(id string) (err error) {
		who, ok, err = h.identify(ctx, id, user)
		return err
	})
	return who, ok, err
}

// lookUser finds a name in the text of a passwd file.
func lookUser(passwd, name string) (_ identity, ok bool) {
	for s := bufio.NewScanner(strings.NewReader(passwd)); s.Scan(); {
		f := strings.Split(s.Text(), ":")
		if len(f) < 4 || f[0] != name {
			continue
		}
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		return identity{uid, gid}, err1 == nil && err2 == nil && uid >= 0 && gid >= 0
	}
	return identity{}, false
}

// smallFile is the largest that readSmall reads.
const smallFile = 1 << 20

// readSmall is the text of a file in a container, running or not; "" when there is
// none, or something else under its name.
func (h *Host) readSmall(ctx context.Context, id, path string) (string, error) {
	stream, _, err := h.cli().CopyFromContainer(ctx, id, path)
	if isNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s of the container: %w", path, engineError(err))
	}
	defer stream.Close()
	r := tar.NewReader(stream)
	head, err := r.Next()
	if err != nil || head.Typeflag != tar.TypeReg {
		return "", nil
	}
	text, err := io.ReadAll(io.LimitReader(r, smallFile))
	if err != nil {
		return "", fmt.Errorf("read %s of the container: %w", path, engineError(err))
	}
	return string(text), nil
}

// refuseRoot is the answer to run_as_non_root when the user is root, or nobody
// knows who it is.
func refuseRoot(container, user string, who identity, known bool) error {
	switch {
	case known && who.uid != 0:
		return nil
	case known && user == "":
		return problem(runtime.ReasonRunsAsRoot, nil,
			"container %s would run as root, and run_as_non_root is set: set user to a number, or use an image with a USER", container)
	case known:
		return problem(runtime.ReasonRunsAsRoot, nil,
			"container %s would run as root (user %q), and run_as_non_root is set: set another user", container, user)
	}
	return problem(runtime.ReasonRunsAsRoot, nil,
		"container %s: the image's /etc/passwd does not say whether user %q is root, and run_as_non_root is set: set user to a number", container, user)
}
