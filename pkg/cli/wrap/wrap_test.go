package wrap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gangctl/gangctl/pkg/cli/shell"
)

func TestProse(t *testing.T) {
	tests := []struct {
		name  string
		width int
		text  []string
		want  []string
	}{
		{"no limit", 0, []string{"one two three four", "  a   b c d e f g h i"}, []string{"one two three four", "  a   b c d e f g h i"}},
		{"paragraph", 12, []string{"one two", "three four", "", "five"}, []string{"one two", "three four", "", "five"}},
		{"joined", 20, []string{"one two", "three four", "", "five"}, []string{"one two three four", "", "five"}},
		{"long word", 8, []string{"see https://example.com/x now"}, []string{"see", "https://example.com/x", "now"}},
		{"exact", 7, []string{"one two"}, []string{"one two"}},
		{"one less", 6, []string{"one two"}, []string{"one", "two"}},
		{"table", 20, []string{"  -n, --no   one two three", "  -y, --yes  no"}, []string{"  -n, --no   one two", "             three", "  -y, --yes  no"}},
		{"indented", 12, []string{"    one two three"}, []string{"    one two", "    three"}},
		{"head too wide", 18, []string{"  --a-long-flag     one two three"}, []string{"  --a-long-flag", "  one two three"}},
		{"items", 20, []string{"- one two", "- three"}, []string{"- one two", "- three"}},
		{"letters, not bytes", 9, []string{"äöü äöü …"}, []string{"äöü äöü …"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, strings.Split(Prose(strings.Join(tt.text, "\n"), tt.width), "\n")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// However a text is filled, it has the same fields in the same order.
func TestNoTextIsLost(t *testing.T) {
	text := "The arguments after -- are the command, exactly as typed.\n\n    0  all: what was requested is done\n    130  interrupted by Ctrl-C\n\nEnd."
	for width := 1; width < 80; width++ {
		got := Prose(text, width)
		if diff := cmp.Diff(strings.Fields(text), strings.Fields(got)); diff != "" {
			t.Fatalf("width %d: %s", width, diff)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if Columns(line) > width && len(strings.Fields(line)) > 2 {
				t.Errorf("width %d: %q could be broken", width, line)
			}
		}
	}
}

func TestShell(t *testing.T) {
	line := `  gangctl submit tf llama --image i --env 'GREETING=a b  c' -- sh -c "python train.py && touch /done"`
	for _, width := range []int{20, 40, 60, 80} {
		got := Shell("  # what it does, in a few more words than fit\n"+line, width)
		comment, broken, _ := strings.Cut(got, "\n  gangctl")
		if strings.Join(strings.Fields(strings.ReplaceAll(comment, "#", "")), " ") != "what it does, in a few more words than fit" {
			t.Errorf("width %d: %q", width, comment)
		}
		want, err := shell.Split(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		args, err := shell.Split("gangctl" + strings.ReplaceAll(broken, "\\\n", "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, args); diff != "" {
			t.Errorf("width %d: another command (-want +got):\n%s", width, diff)
		}
	}
	if got := Shell(line, 0); got != line {
		t.Errorf("got %q", got)
	}
	if got := Shell(line, 200); got != line {
		t.Errorf("got %q", got)
	}
}

// East Asian characters take two columns, and combining characters none.
func TestColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "…": 1, "日本": 4, "u\u0308ml": 3} {
		if got := Columns(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{"日本語": "日…", "abcdef": "abc…", "abcd": "abcd"} {
		if got := Cut(text, 4); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}
