// Package howto holds that the commands which the guides tell people to type
// exist, with the flags that they name.
package howto

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kballard/go-shellquote"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/pkg/cmd/factory"
	"github.com/gangctl/gangctl/pkg/cmd/root"
	"github.com/gangctl/gangctl/pkg/iostreams"
	"github.com/gangctl/gangctl/pkg/version"
)

// inline is a command in a sentence.
var inline = regexp.MustCompile("`(gangctl [^`]+)`")

func TestCommandsExist(t *testing.T) {
	guides, err := filepath.Glob("../../docs/howto/*.md")
	if err != nil || len(guides) == 0 {
		t.Fatalf("%d guides, %v", len(guides), err)
	}
	total := 0
	for _, guide := range append(guides, "../../docs/install.md", "../../docs/rights.md") {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, line := range commands(string(text)) {
			total++
			if err := exists(line); err != nil {
				t.Errorf("%s: %s: %v", filepath.Base(guide), line, err)
			}
		}
	}
	if total < 30 {
		t.Errorf("only %d commands are found in the guides", total)
	}
}

// commands are those of gangctl in code blocks and in sentences.
func commands(text string) []string {
	var all []string
	fenced := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		code := fenced || strings.HasPrefix(line, "    ")
		line = strings.TrimPrefix(strings.TrimSpace(line), "$ ")
		if code && strings.HasPrefix(line, "gangctl ") {
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " > ")
			line, _, _ = strings.Cut(line, "  #")
			all = append(all, line)
			continue
		}
		for _, m := range inline.FindAllStringSubmatch(line, -1) {
			all = append(all, m[1])
		}
	}
	return all
}

// exists finds the command of a line, and parses the flags.
func exists(line string) error {
	words, err := shellquote.Split(line)
	if err != nil {
		return err
	}
	io, _, _, _ := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	f := &factory.Factory{IO: io, Args: words[1:], Getenv: func(string) string { return "" }, Version: version.Info{}}
	cmd, rest, err := root.NewCommand(f).Find(words[1:])
	if err != nil {
		return err
	}
	if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return &unknown{rest[0]}
	}
	return cmd.ParseFlags(rest)
}

type unknown struct{ word string }

func (u *unknown) Error() string { return "there is no command " + u.word }

// A guide that is wrong is found out.
func TestWrongCommands(t *testing.T) {
	for _, line := range []string{"gangctl instal scheduler", "gangctl install sheduler", "gangctl install scheduler --serv x", "gangctl check --no-such"} {
		if exists(line) == nil {
			t.Errorf("%s exists", line)
		}
	}
	if got := commands("see `gangctl check --pre` and `kubectl get pods`\n\n    gangctl list -A | head\n"); len(got) != 2 || got[1] != "gangctl list -A" {
		t.Errorf("got %q", got)
	}
}
