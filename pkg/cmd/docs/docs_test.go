package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// tree is a program with a visible command, a hidden one, and ours.
func tree(args ...string) *cobra.Command {
	root := &cobra.Command{Use: "gangctl", SilenceUsage: true, SilenceErrors: true}
	run := func(*cobra.Command, []string) {}
	root.AddCommand(
		&cobra.Command{Use: "list", Short: "List jobs", Run: run},
		&cobra.Command{Use: "codes", Short: "What codes mean", Long: "Codes mean this:\n\n      0  fine"},
		&cobra.Command{Use: "scheduler", Hidden: true, Run: run},
		NewCommand(nil),
	)
	root.SetArgs(append([]string{"docs"}, args...))
	return root
}

func TestPages(t *testing.T) {
	for format, want := range map[string]string{"markdown": "gangctl_list.md", "man": "gangctl-list.1"} {
		t.Run(format, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new", "reference")
			if err := tree("--dir", dir, "--format", format).Execute(); err != nil {
				t.Fatal(err)
			}
			page, err := os.ReadFile(filepath.Join(dir, want))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(page), "List jobs") || strings.Contains(string(page), "Auto generated") {
				t.Errorf("page:\n%s", page)
			}
			topic, err := os.ReadFile(filepath.Join(dir, strings.Replace(want, "list", "codes", 1)))
			if err != nil || !strings.Contains(string(topic), "0  fine") || strings.Contains(string(topic), "OPTIONS INHERITED") {
				t.Errorf("the page of a help topic: %v\n%s", err, topic)
			}
			if !strings.Contains(string(topic), "gangctl help codes") || strings.Contains(string(topic), "[flags]") {
				t.Errorf("the page does not say how to get to it:\n%s", topic)
			}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if strings.Contains(file.Name(), "scheduler") {
					t.Errorf("a hidden command has a page: %s", file.Name())
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "--dir is missing"},
		{[]string{"--dir", t.TempDir(), "--format", "pdf"}, "must be one of markdown, man"},
		{[]string{"--dir", filepath.Join(file, "below")}, file},
	} {
		err := tree(tt.args...).Execute()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("docs %v: %v, want an error with %q", tt.args, err, tt.want)
		}
	}
}
