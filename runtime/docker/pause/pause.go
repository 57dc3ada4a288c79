// Package pause makes the program of a pod's sandbox: PID 1 of the processes that
// the pod shares. It waits for signals, reaps children, and ends at SIGTERM or
// SIGINT. It is a few instructions of machine code, so that no compiler, no file
// and no registry is needed to have it.
//
//	block every signal                      a blocked one reaches even PID 1
//	wait:   take the next signal
//	        SIGCHLD: reap, else SIGTERM or SIGINT: exit(0), else wait
//	reap:   wait4(-1, WNOHANG) until nobody is left, then wait
package pause

import (
	"bytes"
	"encoding/binary"
)

// instruction is one line of a program.
type instruction struct {
	label string // where jumps come to; empty: none do
	text  string // as an assembler reads it
	code  []byte
	to    string // label it jumps to; its distance is filled into code
}

// machine is what differs between architectures.
type machine struct {
	elf     uint16 // e_machine
	align   uint64 // the largest page that its kernels use
	program []instruction
	jump    func(code []byte, from, to int) // fills in the distance between two offsets
}

var machines = map[string]machine{"amd64": amd64, "arm64": arm64}

// ELF is the static program for an architecture, by Go's name of it; ok is false
// when there is none.
func ELF(arch string) (file []byte, ok bool) {
	m, ok := machines[arch]
	if !ok {
		return nil, false
	}
	return m.link(assemble(m.program, m.jump)), true
}

// assemble puts the instructions one after another.
func assemble(program []instruction, jump func([]byte, int, int)) []byte {
	labels := map[string]int{}
	size := 0
	for _, i := range program {
		if i.label != "" {
			labels[i.label] = size
		}
		size += len(i.code)
	}
	code := make([]byte, 0, size)
	for _, i := range program {
		from := len(code)
		code = append(code, i.code...)
		if i.to != "" {
			jump(code[from:], from, labels[i.to])
		}
	}
	return code
}

const (
	base       = 0x400000 // where the file is mapped
	headerSize = 64
	entrySize  = 56
	codeAt     = headerSize + 2*entrySize
)

// link puts the two headers of an executable before the code: the whole file is
// mapped, readable and executable, and the stack is not executable.
func (m machine) link(code []byte) []byte {
	size := uint64(codeAt + len(code))
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&b, binary.LittleEndian, v) // into memory: it cannot fail
		}
	}
	put([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)) // 64 bits, little endian, version 1, System V
	put(uint16(2), m.elf, uint32(1))                    // an executable
	put(uint64(base+codeAt), uint64(headerSize), uint64(0), uint32(0))
	put(uint16(headerSize), uint16(entrySize), uint16(2), uint16(0), uint16(0), uint16(0))

	const load, stack, read, write, execute = 1, 0x6474e551, 4, 2, 1
	put(uint32(load), uint32(read|execute), uint64(0), uint64(base), uint64(base), size, size, m.align)
	put(uint32(stack), uint32(read|write), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(16))
	put(code)
	return b.Bytes()
}
