package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/docker/docker/api/types/volume"

	"github.com/stsd/stsd/volumes"
)

var _ volumes.Meter = (*Volumes)(nil)

// Used implements volumes.Meter. It looks into the volume's folder on this machine:
// the engine would have to count the files of all volumes to answer for one.
func (v *Volumes) Used(ctx context.Context, name string) (int64, error) {
	if v.host.remote || v.host.blind.Load() {
		return 0, errors.New("the engine's volumes are not seen from where stsd runs")
	}
	mine, err := v.all(ctx)
	if err != nil {
		return 0, err
	}
	found := mine[name]
	if found == nil {
		return 0, fmt.Errorf("volume %s is not there", name)
	}
	return usedBy(ctx, found)
}

func usedBy(ctx context.Context, v *volume.Volume) (int64, error) {
	dir := v.Mountpoint
	if dir == "" {
		return 0, fmt.Errorf("driver %s does not say where the volume lies", v.Driver)
	}
	seen, err := mounts()
	if err != nil {
		return 0, err
	}
	m, mounted := seen[dir]
	switch {
	case mounted && m.distant():
		return 0, fmt.Errorf("it lies on a file system of type %s", m.kind)
	case mounted && m.whole:
		return usedOn(dir)
	case !mounted && v.Options["type"] != "":
		return 0, errors.New("it is not mounted now")
	}
	return usedBelow(ctx, dir, seen)
}

// usedBelow counts what the files below dir take on their disk, each once. Other
// file systems that are mounted there are left out.
func usedBelow(ctx context.Context, dir string, mounts map[string]mountpoint) (int64, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	var sum int64
	linked := map[uint64]bool{} // files of several names that are counted
	err = fs.WalkDir(root.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, other := mounts[dir+"/"+path]; other {
			return skip(e)
		}
		var info fs.FileInfo
		if err == nil {
			info, err = e.Info()
		}
		switch {
		case err == nil:
			sum += taken(info, linked)
		case errors.Is(err, fs.ErrNotExist) && path != ".": // it went meanwhile
		default:
			return err
		}
		return nil
	})
	return sum, err
}

func skip(e fs.DirEntry) error {
	if e.IsDir() {
		return fs.SkipDir
	}
	return nil
}
