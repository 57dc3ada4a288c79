package hostdns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Step is one thing to do.
type Step struct {
	Do   string   // Write, Mark, Unmark, Restore, Remove, Run
	Path string   // of a file
	Text string   // that is written or restored
	Argv []string // of Run
}

// What a Step does.
const (
	Write   = "write"
	Mark    = "mark"   // put our block into a file
	Unmark  = "unmark" // take it out
	Restore = "restore"
	Remove  = "remove"
	Run     = "run"
)

// String says it in words.
func (s Step) String() string {
	switch s.Do {
	case Run:
		return "run " + strings.Join(s.Argv, " ")
	case Mark:
		return "add a marked block to " + s.Path
	case Unmark:
		return "take the marked block out of " + s.Path
	case Restore:
		return "give " + s.Path + " its old text back"
	}
	return s.Do + " " + s.Path
}

// Installing are the steps of Install; none: it is installed already.
func Installing(h Host, p Plan) ([]Step, error) {
	r, err := Installed(h)
	if err != nil {
		return nil, err
	}
	if r != nil && r.serves(p) && h.intact(r) {
		return nil, nil
	}
	steps, err := Uninstalling(h)
	if err != nil {
		return nil, err
	}
	for _, f := range p.Files {
		if _, err := before(h.at(f.Path)); err != nil {
			return nil, err
		}
		if f.Block != "" {
			steps = append(steps, Step{Do: Mark, Path: f.Path})
			continue
		}
		steps = append(steps, Step{Do: Write, Path: f.Path, Text: f.Text})
	}
	return append(steps, h.running(p.Commands)...), nil
}

// running are the commands as steps, where commands are run at all.
func (h Host) running(commands [][]string) []Step {
	var steps []Step
	for _, argv := range commands {
		if h.Run != nil {
			steps = append(steps, Step{Do: Run, Argv: argv})
		}
	}
	return steps
}

func (h Host) intact(r *Receipt) bool {
	return !slices.ContainsFunc(r.Files, func(k Kept) bool {
		s, err := h.state(k)
		return err != nil || s != Intact
	})
}

// Install carries a plan out, in place of an earlier one. What fails is taken
// back before it returns.
func Install(ctx context.Context, h Host, p Plan) error {
	steps, err := Installing(h, p)
	if err != nil || steps == nil {
		return err
	}
	if err := Uninstall(ctx, h); err != nil {
		return fmt.Errorf("take back what was installed before: %w", err)
	}
	r, err := h.prepare(p)
	if err != nil {
		return err
	}
	if err := h.carryOut(ctx, r); err != nil {
		return errors.Join(err, Uninstall(context.WithoutCancel(ctx), h))
	}
	return nil
}

// prepare makes the folders and puts the receipt on disk.
func (h Host) prepare(p Plan) (*Receipt, error) {
	r := &Receipt{Method: p.Method, Server: p.Server, Zones: p.Zones, Commands: p.Commands}
	for _, f := range p.Files {
		old, err := before(h.at(f.Path))
		if err != nil {
			return nil, err
		}
		k := Kept{Path: f.Path, Block: f.Block, Before: old}
		if f.Block == "" {
			k.Wrote = []byte(f.Text)
		}
		r.Files = append(r.Files, k)
	}
	folders := []string{path.Dir(receiptFile)}
	for _, f := range p.Files {
		folders = append(folders, path.Dir(f.Path))
	}
	for _, folder := range folders {
		made, err := makeFolders(h.at(folder))
		if err != nil {
			return nil, err
		}
		for _, name := range made {
			r.Folders = append(r.Folders, h.fromRoot(name))
		}
	}
	return r, h.keep(r)
}

func (h Host) fromRoot(name string) string {
	rel, err := filepath.Rel(h.at("/"), name)
	if err != nil {
		return name
	}
	return "/" + filepath.ToSlash(rel)
}

// carryOut writes the files and makes the resolver read them.
func (h Host) carryOut(ctx context.Context, r *Receipt) error {
	for _, k := range r.Files {
		if err := h.write(k); err != nil {
			return err
		}
	}
	return h.runAll(ctx, r.Commands)
}

func (h Host) write(k Kept) error {
	name := h.at(k.Path)
	if k.Block != "" {
		return locked(name, func() error { return writeBlock(name, k.Block) })
	}
	b := newFile()
	if k.Before != nil {
		b = *k.Before
	}
	b.Text = k.Wrote
	return put(name, b)
}

// newFile is one that was not there before.
func newFile() Before { return Before{Mode: 0o644, UID: os.Geteuid(), GID: os.Getegid()} }

// writeBlock puts an empty block into the file as it is by now.
func writeBlock(name, id string) error {
	b := newFile()
	old, err := before(name)
	if err != nil {
		return err
	}
	if old != nil {
		b = *old
	}
	if b.Text, err = putBlock(b.Text, id, nil); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return put(name, b)
}

func (h Host) runAll(ctx context.Context, commands [][]string) error {
	var errs []error
	for _, argv := range commands {
		if h.Run == nil {
			break
		}
		if said, err := h.Run(ctx, argv...); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", strings.TrimSpace(strings.Join(argv, " ")+": "+said), err))
		}
	}
	return errors.Join(errs...)
}

// Uninstalling are the steps of Uninstall; none: nothing is installed.
func Uninstalling(h Host) ([]Step, error) {
	r, err := Installed(h)
	if err != nil || r == nil {
		return nil, err
	}
	var steps []Step
	for _, k := range r.Files {
		do := h.undo(k)
		if do.err != nil {
			return nil, do.err
		}
		if do.step.Do != "" {
			steps = append(steps, do.step)
		}
	}
	return append(steps, h.running(r.Commands)...), nil
}

// undoing is how one file goes back to what it was: its step and what is put at
// the path then; nil: nothing is.
type undoing struct {
	step Step
	to   *Before
	err  error
}

// undo decides it. A file that somebody else wrote into is nobody's to remove.
func (h Host) undo(k Kept) undoing {
	state, err := h.state(k)
	switch {
	case err != nil:
		return undoing{err: err}
	case state == Changed:
		return undoing{err: fmt.Errorf("%s was changed since it was installed, and is left alone: remove it by hand first", h.at(k.Path))}
	case k.Block != "":
		return h.undoBlock(k, state)
	case state == Missing && k.Before == nil:
		return undoing{}
	case k.Before != nil:
		return undoing{step: Step{Do: Restore, Path: k.Path, Text: string(k.Before.Text)}, to: k.Before}
	}
	return undoing{step: Step{Do: Remove, Path: k.Path}}
}

// undoBlock leaves what others wrote around the block meanwhile. A file that was
// made for the block and holds nothing else goes with it.
func (h Host) undoBlock(k Kept, state State) undoing {
	if state == Missing {
		return undoing{}
	}
	b, err := before(h.at(k.Path))
	if err != nil || b == nil {
		return undoing{err: err}
	}
	if b.Text, err = takeBlock(b.Text, k.Block); err != nil {
		return undoing{err: err}
	}
	if k.Before == nil && len(b.Text) == 0 {
		return undoing{step: Step{Do: Remove, Path: k.Path}}
	}
	return undoing{step: Step{Do: Unmark, Path: k.Path}, to: b}
}

// Uninstall takes back what is installed: every file is then what it was before,
// but for what others wrote around a block. Nothing is done when a file was
// changed by somebody else.
func Uninstall(ctx context.Context, h Host) error {
	if _, err := Uninstalling(h); err != nil {
		return err
	}
	r, err := Installed(h)
	if err != nil || r == nil {
		return err
	}
	for _, k := range r.Files {
		if err := h.takeBack(k); err != nil {
			return err
		}
	}
	err = h.runAll(ctx, r.Commands) // the files are back: it is said, and no reason to keep the receipt
	if gone := gone(h.at(receiptFile)); gone != nil {
		return errors.Join(err, gone)
	}
	for _, folder := range slices.Backward(r.Folders) {
		_ = os.Remove(h.at(folder)) // one that others use by now stays
	}
	return err
}

func (h Host) takeBack(k Kept) error {
	if k.Block != "" {
		return locked(h.at(k.Path), func() error { return h.takeBackNow(k) })
	}
	return h.takeBackNow(k)
}

func (h Host) takeBackNow(k Kept) error {
	name := h.at(k.Path)
	do := h.undo(k)
	switch {
	case do.err != nil:
		return do.err
	case do.to != nil:
		return put(name, *do.to)
	case do.step.Do == Remove:
		return errors.Join(gone(name), gone(tempName(name)))
	}
	return gone(tempName(name))
}
