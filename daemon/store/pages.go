package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
)

// bbolt trusts the pages of a file: one that was damaged lets it panic, turn for
// ever or hand out a page that is in use. So the tree is walked here before bbolt
// opens it for writing. The format is that of bbolt's file version 2, little-endian
// as on every machine that stsd is built for:
//
//	page    id 8, flags 2, count 2, overflow 4 (further pages), then its elements
//	branch  position 4 (from the element on), key size 4, page 8
//	leaf    flags 4 (1: a bucket), position 4, key size 4, value size 4
//	bucket  root page 8 (0: a page follows inline), sequence 8
//	meta    magic 4, version 4, page size 4, flags 4, root bucket 16, freelist 8,
//	        pages 8, transaction 8, checksum 8 (FNV-1a of all before it)
const (
	pageHead   = 16
	branchPage = 0x01
	leafPage   = 0x02
	freePage   = 0x10
	noFreelist = 1<<64 - 1
)

var errPage = errors.New("a page makes no sense")

// pages is a file while it is walked.
type pages struct {
	file []byte
	size int             // of a page
	high uint64          // the number of pages
	seen map[uint64]bool // that belong to the tree
}

// checkPages walks a file; nil: bbolt can read all of it.
func checkPages(path string) error {
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	p := &pages{file: file, seen: map[uint64]bool{}}
	meta, err := p.meta()
	if err != nil {
		return err
	}
	if err := p.walk(binary.LittleEndian.Uint64(meta[16:]), 0); err != nil {
		return err
	}
	return p.freelist(binary.LittleEndian.Uint64(meta[32:]))
}

// meta is the newest of the two that is whole.
func (p *pages) meta() (newest []byte, err error) {
	for _, size := range []int{4096, os.Getpagesize(), 8192, 16384, 65536} {
		for at := 0; at <= size; at += size {
			m := p.metaAt(at, size)
			if m != nil && (newest == nil || binary.LittleEndian.Uint64(m[48:]) > binary.LittleEndian.Uint64(newest[48:])) {
				newest, p.size, p.high = m, size, binary.LittleEndian.Uint64(m[40:])
			}
		}
	}
	if newest == nil {
		return nil, fmt.Errorf("%w: neither of its two first pages is whole", errPage)
	}
	return newest, nil
}

func (p *pages) metaAt(at, size int) []byte {
	if len(p.file) < at+pageHead+64 {
		return nil
	}
	m := p.file[at+pageHead : at+pageHead+64]
	sum := fnv.New64a()
	sum.Write(m[:56])
	if int(binary.LittleEndian.Uint32(m[8:])) != size || sum.Sum64() != binary.LittleEndian.Uint64(m[56:]) {
		return nil
	}
	return m
}

// page is one with the pages that follow it; each belongs to the tree once.
func (p *pages) page(id uint64) ([]byte, error) {
	if id < 2 || id >= p.high || id >= uint64(len(p.file)/p.size) {
		return nil, fmt.Errorf("%w: page %d is not in the file", errPage, id)
	}
	at := int(id) * p.size
	more := uint64(binary.LittleEndian.Uint32(p.file[at+12:]))
	if binary.LittleEndian.Uint64(p.file[at:]) != id || id+more >= p.high || int(id+more+1)*p.size > len(p.file) {
		return nil, fmt.Errorf("%w: page %d", errPage, id)
	}
	for n := id; n <= id+more; n++ {
		if p.seen[n] {
			return nil, fmt.Errorf("%w: page %d is there twice", errPage, n)
		}
		p.seen[n] = true
	}
	return p.file[at : int(id+more+1)*p.size], nil
}

// deepest is more than a tree of any size has.
const deepest = 64

func (p *pages) walk(id uint64, depth int) error {
	if depth > deepest {
		return fmt.Errorf("%w: the tree has no end", errPage)
	}
	b, err := p.page(id)
	if err != nil {
		return err
	}
	return p.elements(b, depth)
}

// elements walks what is in a page.
func (p *pages) elements(b []byte, depth int) error {
	flags, count := binary.LittleEndian.Uint16(b[8:]), int(binary.LittleEndian.Uint16(b[10:]))
	if flags != branchPage && flags != leafPage || len(b) < pageHead*(count+1) || flags == branchPage && count == 0 {
		return fmt.Errorf("%w: flags %#x, %d elements", errPage, flags, count)
	}
	before := ""
	for i := range count {
		e := b[pageHead*(i+1):]
		key, value, err := split(e, flags)
		if err != nil {
			return err
		}
		if i > 0 && key <= before {
			return fmt.Errorf("%w: key %q follows %q", errPage, key, before)
		}
		before = key
		switch {
		case flags == branchPage:
			err = p.walk(binary.LittleEndian.Uint64(e[8:]), depth+1)
		case binary.LittleEndian.Uint32(e)&1 != 0:
			err = p.bucket(value, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// split gives key and value of the element that e begins with.
func split(e []byte, flags uint16) (key string, value []byte, err error) {
	pos, size, more := binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:]), uint32(0)
	if flags == leafPage {
		pos, size, more = binary.LittleEndian.Uint32(e[4:]), binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:])
	}
	end := uint64(pos) + uint64(size)
	if pos < pageHead || end+uint64(more) > uint64(len(e)) {
		return "", nil, fmt.Errorf("%w: an element reaches past its page", errPage)
	}
	return string(e[pos:end]), e[end : end+uint64(more)], nil
}

func (p *pages) bucket(value []byte, depth int) error {
	if len(value) < pageHead || depth > deepest {
		return fmt.Errorf("%w: a bucket of %d bytes", errPage, len(value))
	}
	if root := binary.LittleEndian.Uint64(value); root != 0 {
		return p.walk(root, depth)
	}
	inline := value[pageHead:]
	if len(inline) < pageHead || binary.LittleEndian.Uint16(inline[8:]) != leafPage {
		return fmt.Errorf("%w: a bucket's own one", errPage)
	}
	return p.elements(inline, depth)
}

// freelist: what is free is not in use.
func (p *pages) freelist(id uint64) error {
	if id == noFreelist {
		return nil
	}
	b, err := p.page(id)
	if err != nil {
		return err
	}
	count, at := uint64(binary.LittleEndian.Uint16(b[10:])), pageHead
	if count == 0xffff {
		count, at = binary.LittleEndian.Uint64(b[pageHead:]), pageHead+8
	}
	if binary.LittleEndian.Uint16(b[8:]) != freePage || count > uint64(len(b)-at)/8 {
		return fmt.Errorf("%w: the list of free pages", errPage)
	}
	last := uint64(1)
	for i := range int(count) {
		free := binary.LittleEndian.Uint64(b[at+8*i:])
		if free <= last || free >= p.high || p.seen[free] {
			return fmt.Errorf("%w: page %d is said to be free", errPage, free)
		}
		last = free
	}
	return nil
}
