package help

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/gang/dialect"

	"github.com/spf13/cobra"
)

func TestTopics(t *testing.T) {
	for _, c := range Topics() {
		parent := &cobra.Command{Use: "gangctl"}
		parent.AddCommand(c)
		if !c.IsAdditionalHelpTopicCommand() || c.Short == "" || strings.HasSuffix(c.Short, ".") || c.Long == "" || strings.Contains(c.Long, "\t") {
			t.Errorf("%s is no topic, or says nothing", c.Name())
		}
	}
}

// The variables of the topic are those that the code reads, no more and no less.
func TestEveryVariableIsNamed(t *testing.T) {
	text := newEnvironment().Long
	// GANGCTL_ and a flag is one family; libraries read the others.
	known := []string{"GANGCTL_FLAG", "KUBECONFIG", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}
	read := regexp.MustCompile(`[gG]etenv\("([A-Z_]+)"\)`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range read.FindAllStringSubmatch(string(source), -1) {
			known = append(known, m[1])
			if !regexp.MustCompile(`(?m)^    .*\b` + m[1] + `\b`).MatchString(text) {
				t.Errorf("%s reads %s, which the topic does not list", path, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(known) < 12 {
		t.Errorf("only %q are read: the test looks at the wrong place", known)
	}
	for _, v := range variables {
		for name := range strings.SplitSeq(v[0], ", ") {
			if !slices.Contains(known, name) {
				t.Errorf("no code reads %s", name)
			}
		}
	}
}

func TestEveryDialectIsNamed(t *testing.T) {
	text := newDialects().Long
	for _, r := range dialect.Readers() {
		if membership(r.Dialect) == "" || !strings.Contains(text, "\n    "+string(r.Dialect)+"\n        pods:    "+membership(r.Dialect)+"\n") {
			t.Errorf("%s is missing", r.Dialect)
		}
		for _, kind := range r.Kinds {
			if !strings.Contains(text, kind.Group) {
				t.Errorf("%s: %s is missing", r.Dialect, kind.Group)
			}
		}
	}
}

// Every format that a listing has is explained, and none that it has not.
func TestEveryFormatIsNamed(t *testing.T) {
	text := newFormatting().Long
	cmd := &cobra.Command{}
	(&printer.Flags{}).AddTableFlags(cmd)
	usage := cmd.Flag("output").Usage
	for format := range strings.SplitSeq(usage[strings.Index(usage, ": ")+2:], "|") {
		if !regexp.MustCompile(`(?m)^    (\w+, )?` + regexp.QuoteMeta(format)).MatchString(text) {
			t.Errorf("%s is missing", format)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^    ([a-z-]+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(usage, m[1]) {
			t.Errorf("there is no format %s", m[1])
		}
	}
}
