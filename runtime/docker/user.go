package docker

import (
	"archive/tar"
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stsd/stsd/jobspecs"
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

// numbersOf reads "UID" (group 0, as the engine does) or "UID:GID".
func numbersOf(user string) (_ identity, ok bool) {
	u, g, both := strings.Cut(user, ":")
	uid, err := strconv.Atoi(u)
	if err != nil || uid < 0 {
		return identity{}, false
	}
	if !both {
		return identity{uid, 0}, true
	}
	gid, err := strconv.Atoi(g)
	return identity{uid, gid}, err == nil && gid >= 0
}

// identify resolves a name with the container's own /etc/passwd and /etc/group; ok
// is false when it does not have the user.
func (h *Host) identify(ctx context.Context, id, user string) (_ identity, ok bool, err error) {
	if who, ok := numericIdentity(user); ok {
		return who, true, nil
	}
	a, err := h.readAccounts(ctx, id, user, accounts{})
	if err != nil {
		return identity{}, false, err
	}
	who, err := a.look(user)
	return who, !errors.Is(err, errNoUser), nil
}

// account names a user of an image.
type account struct{ image, user string }

// fileOwner is to whom a container's files belong that name no owner: whom it runs
// as. A name is looked up in the image before there is a container, once for each
// image; with a passwd of the spec's own, each time.
func (h *Host) fileOwner(ctx context.Context, spec *pods.ContainerSpec, image string) (who identity, err error) {
	user, own := userOf(spec), ownAccounts(&spec.Main)
	asks := slices.ContainsFunc(spec.Main.Files, func(f jobspecs.File) bool { return f.Owner == "" })
	who, known := numbersOf(user)
	if user == "" || known || !asks {
		return who, nil
	}
	key, kept := account{spec.Image.ID, user}, spec.Image.ID != "" && own == (accounts{})
	if found, ok := h.accounts.Load(key); ok && kept {
		return found.(identity), nil
	}
	err = h.reach(ctx, spec, image, nil, func(id string) error {
		a, err := h.readAccounts(ctx, id, user, own)
		if err == nil {
			who, err = a.look(user)
		}
		return err
	})
	if err == nil && kept {
		h.accounts.Store(key, who)
	}
	return who, err
}

// accounts are the texts in which the engine looks for users and groups.
type accounts struct{ passwd, group string }

// ownAccounts are those that the spec puts in the place of the image's. What is
// mounted there the engine does not see when it looks.
func ownAccounts(c *jobspecs.Container) (own accounts) {
	for _, f := range c.Files {
		switch at := path.Clean(f.Path); {
		case !isCopied(c, f):
		case at == "/etc/passwd":
			own.passwd = string(f.Content)
		case at == "/etc/group":
			own.group = string(f.Content)
		}
	}
	return own
}

// readAccounts reads from a container what own does not have and user needs.
func (h *Host) readAccounts(ctx context.Context, id, user string, own accounts) (_ accounts, err error) {
	if own.passwd == "" {
		if own.passwd, err = h.readSmall(ctx, id, "/etc/passwd"); err != nil {
			return own, err
		}
	}
	if _, group, _ := strings.Cut(user, ":"); own.group == "" && group != "" {
		own.group, err = h.readSmall(ctx, id, "/etc/group")
	}
	return own, err
}

// Why a container's user is not known.
var (
	errNoUser  = errors.New("the image has no such user")
	errNoGroup = errors.New("the image has no such group")
)

// look resolves "USER" and "USER:GROUP", each a name or a number, as the engine
// does. Where only the group is not there, the gid is -1.
func (a accounts) look(user string) (who identity, err error) {
	name, group, _ := strings.Cut(user, ":")
	who, ok := lookUser(a.passwd, name)
	if uid, err := strconv.Atoi(cmp.Or(name, "0")); !ok && err == nil && uid >= 0 {
		who, ok = identity{uid, 0}, true
	}
	if !ok {
		return identity{}, problem(runtime.ReasonBadCommand, errNoUser, "user = %q", user)
	}
	if group == "" {
		return who, nil
	}
	gid, err := strconv.Atoi(group)
	if err != nil || gid < 0 {
		gid, ok = lookGroup(a.group, group)
	}
	if !ok {
		return identity{who.uid, -1}, problem(runtime.ReasonBadCommand, errNoGroup, "user = %q", user)
	}
	return identity{who.uid, gid}, nil
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

// lookGroup finds a name in the text of a group file.
func lookGroup(group, name string) (gid int, ok bool) {
	for s := bufio.NewScanner(strings.NewReader(group)); s.Scan(); {
		f := strings.Split(s.Text(), ":")
		if len(f) < 3 || f[0] != name {
			continue
		}
		gid, err := strconv.Atoi(f[2])
		return gid, err == nil && gid >= 0
	}
	return 0, false
}

// smallFile is the largest that readSmall reads.
const smallFile = 1 << 20

// readSmall is the text of a file in a container, running or not; "" when there is
// none, or something else under its name. A link leads to a file of the container.
func (h *Host) readSmall(ctx context.Context, id, path string) (string, error) {
	stat, err := h.cli().ContainerStatPath(ctx, id, path)
	if err == nil && stat.Mode&fs.ModeSymlink != 0 {
		path = stat.LinkTarget
	}
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
