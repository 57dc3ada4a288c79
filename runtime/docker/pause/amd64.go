package pause

// System calls by number, arguments in rdi, rsi, rdx, r10: Linux on x86-64.
var amd64 = machine{elf: 62, align: 0x1000, jump: jump8, program: []instruction{
	{text: "push -1              ; the set of all signals", code: []byte{0x6a, 0xff}},
	{text: "xor edi, edi         ; SIG_BLOCK", code: []byte{0x31, 0xff}},
	{text: "mov rsi, rsp         ; the set", code: []byte{0x48, 0x89, 0xe6}},
	{text: "xor edx, edx         ; the old one: not wanted", code: []byte{0x31, 0xd2}},
	{text: "push 8", code: []byte{0x6a, 0x08}},
	{text: "pop r10              ; bytes of a set", code: []byte{0x41, 0x5a}},
	{text: "mov eax, 14          ; rt_sigprocmask", code: []byte{0xb8, 14, 0, 0, 0}},
	{text: "syscall", code: []byte{0x0f, 0x05}},

	{label: "wait", text: "mov rdi, rsp  ; the set", code: []byte{0x48, 0x89, 0xe7}},
	{text: "xor esi, esi         ; what is known of it: not wanted", code: []byte{0x31, 0xf6}},
	{text: "xor edx, edx         ; for ever", code: []byte{0x31, 0xd2}},
	{text: "push 8", code: []byte{0x6a, 0x08}},
	{text: "pop r10              ; bytes of a set", code: []byte{0x41, 0x5a}},
	{text: "mov eax, 128         ; rt_sigtimedwait", code: []byte{0xb8, 128, 0, 0, 0}},
	{text: "syscall", code: []byte{0x0f, 0x05}},
	{text: "cmp eax, 17          ; SIGCHLD", code: []byte{0x83, 0xf8, 17}},
	{text: "je reap", code: []byte{0x74, 0}, to: "reap"},
	{text: "cmp eax, 15          ; SIGTERM", code: []byte{0x83, 0xf8, 15}},
	{text: "je end", code: []byte{0x74, 0}, to: "end"},
	{text: "cmp eax, 2           ; SIGINT", code: []byte{0x83, 0xf8, 2}},
	{text: "jne wait", code: []byte{0x75, 0}, to: "wait"},

	{label: "end", text: "xor edi, edi   ; 0", code: []byte{0x31, 0xff}},
	{text: "mov eax, 231         ; exit_group", code: []byte{0xb8, 231, 0, 0, 0}},
	{text: "syscall", code: []byte{0x0f, 0x05}},

	{label: "reap", text: "push -1", code: []byte{0x6a, 0xff}},
	{text: "pop rdi              ; any child", code: []byte{0x5f}},
	{text: "xor esi, esi         ; its status: not wanted", code: []byte{0x31, 0xf6}},
	{text: "push 1", code: []byte{0x6a, 0x01}},
	{text: "pop rdx              ; WNOHANG", code: []byte{0x5a}},
	{text: "xor r10d, r10d       ; what it used: not wanted", code: []byte{0x45, 0x31, 0xd2}},
	{text: "mov eax, 61          ; wait4", code: []byte{0xb8, 61, 0, 0, 0}},
	{text: "syscall", code: []byte{0x0f, 0x05}},
	{text: "test eax, eax", code: []byte{0x85, 0xc0}},
	{text: "jg reap", code: []byte{0x7f, 0}, to: "reap"},
	{text: "jmp wait", code: []byte{0xeb, 0}, to: "wait"},
}}

// jump8 writes the distance from the end of a jump of two bytes.
func jump8(code []byte, from, to int) { code[1] = byte(to - from - 2) }
