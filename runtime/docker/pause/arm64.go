package pause

import "encoding/binary"

// System calls by number in x8, arguments in x0 to x3: Linux on AArch64.
var arm64 = machine{elf: 183, align: 0x10000, jump: jumpWords, program: []instruction{
	{text: "mov x9, #-1          // the set of all signals", code: word(0x92800009)},
	{text: "str x9, [sp, #-16]!", code: word(0xf81f0fe9)},
	{text: "mov x0, #0           // SIG_BLOCK", code: word(0xd2800000)},
	{text: "mov x1, sp           // the set", code: word(0x910003e1)},
	{text: "mov x2, #0           // the old one: not wanted", code: word(0xd2800002)},
	{text: "mov x3, #8           // bytes of a set", code: word(0xd2800103)},
	{text: "mov x8, #135         // rt_sigprocmask", code: word(0xd28010e8)},
	{text: "svc #0", code: word(0xd4000001)},

	{label: "wait", text: "mov x0, sp    // the set", code: word(0x910003e0)},
	{text: "mov x1, #0           // what is known of it: not wanted", code: word(0xd2800001)},
	{text: "mov x2, #0           // for ever", code: word(0xd2800002)},
	{text: "mov x3, #8           // bytes of a set", code: word(0xd2800103)},
	{text: "mov x8, #137         // rt_sigtimedwait", code: word(0xd2801128)},
	{text: "svc #0", code: word(0xd4000001)},
	{text: "cmp w0, #17          // SIGCHLD", code: word(0x7100441f)},
	{text: "b.eq reap", code: word(0x54000000), to: "reap"},
	{text: "cmp w0, #15          // SIGTERM", code: word(0x71003c1f)},
	{text: "b.eq end", code: word(0x54000000), to: "end"},
	{text: "cmp w0, #2           // SIGINT", code: word(0x7100081f)},
	{text: "b.ne wait", code: word(0x54000001), to: "wait"},

	{label: "end", text: "mov x0, #0     // the exit code", code: word(0xd2800000)},
	{text: "mov x8, #94          // exit_group", code: word(0xd2800bc8)},
	{text: "svc #0", code: word(0xd4000001)},

	{label: "reap", text: "mov x0, #-1   // any child", code: word(0x92800000)},
	{text: "mov x1, #0           // its status: not wanted", code: word(0xd2800001)},
	{text: "mov x2, #1           // WNOHANG", code: word(0xd2800022)},
	{text: "mov x3, #0           // what it used: not wanted", code: word(0xd2800003)},
	{text: "mov x8, #260         // wait4", code: word(0xd2802088)},
	{text: "svc #0", code: word(0xd4000001)},
	{text: "cmp w0, #0", code: word(0x7100001f)},
	{text: "b.gt reap", code: word(0x5400000c), to: "reap"},
	{text: "b wait", code: word(0x14000000), to: "wait"},
}}

func word(w uint32) []byte { return binary.LittleEndian.AppendUint32(nil, w) }

// jumpWords writes the distance from the jump itself, in words: 26 bits of b, 19
// bits from bit 5 of a conditional one.
func jumpWords(code []byte, from, to int) {
	w, distance := binary.LittleEndian.Uint32(code), uint32((to-from)/4)
	if w == 0x14000000 {
		w |= distance & (1<<26 - 1)
	} else {
		w |= distance & (1<<19 - 1) << 5
	}
	binary.LittleEndian.PutUint32(code, w)
}
