package hcl

import (
	"strings"
	"testing"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct{ rule, text, want string }{
		{"nothing", "", ""},
		{"blank lines only", "\n\n \n", ""},
		{"alignment", "a=1\nbcd   =  2", "a   = 1\nbcd = 2\n"},
		{"indentation", "a \"b\" {\nc=1\nd {\ne=2\n}\n}\n", "a \"b\" {\n  c = 1\n  d {\n    e = 2\n  }\n}\n"},
		{"one blank line for many", "a = 1\n\n\n\nb = 2\n", "a = 1\n\nb = 2\n"},
		{"no blank line at the edges of a block", "\n\na {\n\n  b = 1\n\n}\n\n\n", "a {\n  b = 1\n}\n"},
		{"no blanks at the end of a line", "a = 1   \n# b  \n", "a = 1\n# b\n"},
		{"comments", "# one\na = 1 # two\n/* three\n\n\n  four   \n*/\n", "# one\na = 1 # two\n/* three\n\n\n  four   \n*/\n"},
		{"a heredoc as it is", "a = <<EOT\n\n\n  x   \n}\n\nEOT\n", "a = <<EOT\n\n\n  x   \n}\n\nEOT\n"},
		{"Windows' line ends", "a=1\r\nb=2\r\n", "a = 1\nb = 2\n"},
	} {
		got, ds := Format("a.hcl", []byte(c.text))
		if string(got) != c.want || len(ds) > 0 {
			t.Errorf("%s: %q %v, want %q", c.rule, got, ds, c.want)
		}
		if again, _ := Format("a.hcl", got); string(again) != string(got) {
			t.Errorf("%s: formatted again %q", c.rule, again)
		}
	}
}

func TestFormatLeavesABrokenFileAlone(t *testing.T) {
	for _, text := range []string{"a {", "\xff", "a = \"${X##y}\"\n"} {
		got, ds := Format("a.hcl", []byte(text))
		if string(got) != text || !HasErrors(ds) {
			t.Errorf("%q: %q %v", text, got, ds)
		}
	}
}

func TestDiagnosticsInColour(t *testing.T) {
	_, ds := parse(web("usr = \"x\""))
	var b strings.Builder
	WriteDiagnostics(&b, ds, true)
	want := "a.hcl:5:1: \x1b[1;31merror: \x1b[0m\x1b[1mthe container block has no attribute \"usr\"\x1b[0m\n  usr = \"x\"\n  ^^^\n  Did you mean \"user\"?\n"
	if b.String() != want {
		t.Errorf("%q\nwant %q", b.String(), want)
	}
}
