package shell

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

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
