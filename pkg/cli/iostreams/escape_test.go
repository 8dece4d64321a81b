package iostreams

import (
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestEscape(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"plain":                {"größe 日本\tx\n", "größe 日本\tx\n"},
		"our style, forged":    {"\x1b[32mREADY\x1b[0m x", "^[[32mREADY^[[0m x"},
		"another style":        {"\x1b[8mhidden", "^[[8mhidden"},
		"the clipboard":        {"\x1b]52;c;cm0gLXJm\a", `^[]52;c;cm0gLXJm\u0007`},
		"overwrites a line":    {"ok\rBLOCKED", `ok\rBLOCKED`},
		"backspace and delete": {"a\b\x7f", `a\u0008\u007f`},
		"C1":                   {"\u009b2J", `\u009b2J`},
		"a lone byte":          {"\x9b2J", `\x9b2J`},
		"no width":             {"a\u200bb\ufeffc\u2060d\u00ade", `a\u200bb\ufeffc\u2060d\u00ade`},
		"marks of direction":   {"a\u200fb\u061cc", `a\u200fb\u061cc`},
		"tags":                 {"a\U000e0041", `a\udb40\udc41`},
		"emoji and scripts":    {"👩\u200d💻 می\u200cخواهم", "👩\u200d💻 می\u200cخواهم"},
		"direction":            {"a\u202eb\u2066c", `a\u202eb\u2066c`},
	} {
		if got := Escape(tt.text); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// However text is cut into writes, it comes out the same.
func TestStreamsEscape(t *testing.T) {
	const text = "größe 日本 \u009b2J\x1b]0;x\a\n"
	for cut := range len(text) {
		s, _, out, errOut := Test(clocktesting.NewFakeClock(time.Time{}))
		for _, w := range []io.Writer{s.Out, s.ErrOut} {
			for _, part := range []string{text[:cut], text[cut:]} {
				if n, err := io.WriteString(w, part); n != len(part) || err != nil {
					t.Fatalf("wrote %d of %d, %v", n, len(part), err)
				}
			}
		}
		if out.String() != Escape(text) || errOut.String() != Escape(text) {
			t.Errorf("cut at %d: got %q and %q, want %q", cut, out, errOut, Escape(text))
		}
	}
}

// Our styles reach a stream that takes colour, and no other.
func TestStylesAreEscapedWithoutColor(t *testing.T) {
	const styled = "\x1b[1;31merror:\x1b[0m x"
	for mode, want := range map[ColorMode]string{ColorAuto: "^[[1;31merror:^[[0m x", ColorNever: "^[[1;31merror:^[[0m x", ColorAlways: styled} {
		s, _, out, errOut := Test(clocktesting.NewFakeClock(time.Time{}))
		s.SetColor(mode)
		for _, w := range []io.Writer{s.Out, s.ErrOut} {
			if _, err := io.WriteString(w, styled); err != nil {
				t.Fatal(err)
			}
		}
		if out.String() != want || errOut.String() != want {
			t.Errorf("--color=%s: got %q and %q, want %q", mode, out, errOut, want)
		}
	}
}

func TestVerbatim(t *testing.T) {
	s, _, out, errOut := Test(clocktesting.NewFakeClock(time.Time{}))
	for _, w := range []io.Writer{s.VerbatimOut(), s.VerbatimErrOut()} {
		if _, err := io.WriteString(w, "\x1b[2J"); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "\x1b[2J" || errOut.String() != "\x1b[2J" {
		t.Errorf("got %q and %q", out, errOut)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("\x1b[1;31mx\x1b[0m\x1b]52;c;\a\u009b\x9b")
	f.Fuzz(func(t *testing.T, text string) {
		colored := escape(text, true)
		for _, style := range []Style{plain, Red, Yellow, Green, Cyan} {
			colored = strings.ReplaceAll(colored, style.sequence(), "")
		}
		for _, got := range []string{Escape(text), colored} {
			for _, r := range got {
				if r != '\n' && r != '\t' && r != '\u200c' && r != '\u200d' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r)) {
					t.Fatalf("%q lets %q through: %q", text, r, got)
				}
			}
		}
	})
}
