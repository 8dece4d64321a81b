package root

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// helpOf is the help of a command on a terminal of a width; 0 is a pipe.
func helpOf(t *testing.T, width int, path ...string) string {
	t.Helper()
	_, f, output := newRoot(t, append([]string{"help"}, path...)...)
	if width > 0 {
		f.IO.SetTerminal(width)
	}
	if code := Execute(t.Context(), f, NewCommand(f)); code != failure.CodeOK {
		t.Fatalf("%q: %d", path, code)
	}
	text, _ := output()
	return text
}

// Whatever the width, help has the same text, and no line is wider than the terminal that could be broken.
func TestHelpFits(t *testing.T) {
	root, _, _ := newRoot(t)
	walk(root, func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		path := strings.Fields(cmd.CommandPath())[1:]
		whole := helpOf(t, 0, path...)
		for _, width := range []int{60, 80, 120} {
			text := helpOf(t, width, path...)
			for line := range strings.Lines(text) {
				line = strings.TrimRight(line, "\n") // what is quoted is one argument
				if fields := strings.Fields(line); utf8.RuneCountInString(line) > width && len(fields) > 2 && !strings.HasPrefix(fields[0], "'") {
					t.Errorf("%s at %d: %q is %d wide", cmd.CommandPath(), width, line, utf8.RuneCountInString(line))
				}
			}
			if width == 80 {
				if diff := cmp.Diff(plain(whole), plain(text)); diff != "" {
					t.Errorf("%s at %d differs: %s", cmd.CommandPath(), width, diff)
				}
			}
		}
	})
}

// plain is the text of help, split at blanks, without the signs of broken lines.
func plain(text string) []string {
	var fields []string
	for _, field := range strings.Fields(text) {
		if field != `\` && field != "#" {
			fields = append(fields, field)
		}
	}
	return fields
}

// A wide terminal is not filled: lines of 300 letters are hard to read.
func TestHelpIsNotTooWide(t *testing.T) {
	if diff := cmp.Diff(helpOf(t, 120, "submit", "tf"), helpOf(t, 300, "submit", "tf")); diff != "" {
		t.Error(diff)
	}
}
