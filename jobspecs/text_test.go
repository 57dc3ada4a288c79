package jobspecs

import "testing"

func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"primary":                      "primary",
		"größe\tzwei\nZeilen":          "größe\tzwei\nZeilen",
		"\x1b[31mevil\x1b[0m":          "?[31mevil?[0m",
		"\x1b]0;title\x07\r\x7f\u009b": "?]0;title????",
	} {
		if got := Shown(text); got != want {
			t.Errorf("Shown(%q) = %q, want %q", text, got, want)
		}
	}
}
