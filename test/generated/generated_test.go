// Package generated tests that what is in the tree and was made from code is
// what the code makes today.
package generated

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/root"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

const hint = "make generate, and look at what changed"

// gangctl runs a command in this process and returns what it prints.
func gangctl(t *testing.T, args ...string) string {
	t.Helper()
	io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	f := &cmdutil.Factory{IO: io, Args: args, Getenv: func(string) string { return "" }, Version: version.Info{}}
	if code := root.Execute(t.Context(), f, root.NewCommand(f)); code != failure.CodeOK {
		t.Fatalf("gangctl %v: exit code %d\n%s", args, code, errOut)
	}
	return out.String()
}

func TestReference(t *testing.T) {
	dir := t.TempDir()
	gangctl(t, "docs", "--dir", dir)
	want, got := files(t, dir), files(t, "../../docs/reference")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/reference is not what the commands say (%s):\n%s", hint, diff)
	}
}

// Every page of the reference is a man page, too, which describes how to use the command.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	gangctl(t, "docs", "--format", "man", "--dir", dir)
	pages := files(t, dir)
	for name := range files(t, "../../docs/reference") {
		man := strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "_", "-") + ".1"
		page, written := pages[man]
		delete(pages, man)
		if !written {
			t.Errorf("%s has no man page", name)
		}
		for _, section := range []string{".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION"} {
			if !strings.Contains(page, section+"\n") {
				t.Errorf("%s lacks %s", man, section)
			}
		}
	}
	for man := range pages {
		t.Errorf("%s is in no reference", man)
	}
}

func TestCompletions(t *testing.T) {
	for shell, file := range map[string]string{
		"bash": "gangctl.bash", "zsh": "_gangctl", "fish": "gangctl.fish", "powershell": "gangctl.ps1",
	} {
		got, err := os.ReadFile(filepath.Join("../../completions", file))
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(gangctl(t, "completion", shell), string(got)); diff != "" {
			t.Errorf("completions/%s is not what the command prints (%s):\n%s", file, hint, diff)
		}
	}
}

func TestReasons(t *testing.T) {
	got, err := os.ReadFile("../../docs/why-pending/codes.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answer.Reference(), string(got)); diff != "" {
		t.Errorf("docs/why-pending/codes.md is not what the table of codes says (%s):\n%s", hint, diff)
	}
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		contents[entry.Name()] = string(content)
	}
	return contents
}
