package phrase

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShorten(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 3, ""},
		{"abc", 3, "abc"},
		{"abcd", 3, "…"},
		{"abcdef", 5, "ab…"},
		{"üüü", 6, "üüü"},
		{"üüüü", 6, "ü…"},
	} {
		if got := Shorten(c.text, c.limit); got != c.want {
			t.Errorf("%q in %d bytes is %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"größer, グループ": "größer, グループ", "a\nb\tc": `a\nb\tc`, "\x1b]52;c;aGk=\x07x": `^[]52;c;aGk=\u0007x`, "a\xffb": `a\xffb`,
	} {
		if got := Plain(text); got != want || Plain(got) != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("4 of 8 GPUs free", 7)
	f.Add("größer", 4)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 3 || !utf8.ValidString(text) {
			t.Skip()
		}
		got := Shorten(text, limit)
		if len(got) > limit || !utf8.ValidString(got) || !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) {
			t.Errorf("%q in %d bytes is %q", text, limit, got)
		}
	})
}
