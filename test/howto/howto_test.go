package howto

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func documented(t *testing.T) []Line {
	t.Helper()
	all, err := Documented("../..")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The command lines of guides exist, with the flags that they name. test/howto/e2e types it.
func TestCommandsExist(t *testing.T) {
	all := documented(t)
	for _, line := range all {
		typed, _ := Typed(line.Text)
		for _, text := range []string{line.Text, typed} {
			if _, err := Commands(text); err != nil {
				t.Errorf("%s: %v", line.Place(), err)
			}
		}
	}
	if len(all) < 120 {
		t.Errorf("only %d command lines are found in the documentation", len(all))
	}
}

// inline is a command in a sentence.
var inline = regexp.MustCompile("`(gangctl [^`]+)`")

func TestCommandsInSentencesExist(t *testing.T) {
	total := 0
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/howto/*.md", "../../docs/explanation/*.md", "../../docs/why-pending/README.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range inline.FindAllStringSubmatch(string(text), -1) {
				if strings.Contains(m[1], "|") || strings.HasPrefix(m[1], "gangctl scheduler") {
					continue // a choice; what only the image runs
				}
				total++
				if _, err := Commands(strings.ReplaceAll(m[1], "…", "")); err != nil && !strings.Contains(err.Error(), "flag needs an argument") {
					t.Errorf("%s: %v", page, err)
				}
			}
		}
	}
	if total < 30 {
		t.Errorf("only %d commands are found in sentences", total)
	}
}

// An exception, a placeholder or a fixture that no line needs any more goes.
func TestTablesAreInUse(t *testing.T) {
	all := documented(t)
	used := func(what string, match *regexp.Regexp) {
		if !slices.ContainsFunc(all, func(l Line) bool { return match.MatchString(l.Text) }) {
			t.Errorf("%s %s: no documented line needs it", what, match)
		}
	}
	for _, e := range Exceptions() {
		used("exception", e.Match)
		if e.Reason == "" {
			t.Errorf("exception %s has no reason", e.Match)
		}
	}
	for _, g := range Fixtures() {
		used("fixture", g.Match)
	}
	for name := range Placeholders() {
		used("placeholder", regexp.MustCompile(`\b`+name+`\b`))
	}
}

func TestLines(t *testing.T) {
	page := "# Top\n\nSee `gangctl list`.\n\n    gangctl list -A | head\n    kubectl get pods\n\n1. Step:\n\n       gangctl check --pre\n\n" +
		"```console\n$ gangctl list \\\n    -A\nNAME\ngangctl is quoted\n$ make test\n```\n\n```yaml\ngangctl: x\n```\n\n  ```sh\n  eval \"$(gangctl-sandbox up)\"\n  ```\n"
	var got []string
	for _, l := range lines("docs/x.md", page) {
		got = append(got, l.Text)
	}
	want := []string{"gangctl list -A | head", "gangctl check --pre", "gangctl list -A", "make test", `eval "$(gangctl-sandbox up)"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	reference := "## x\n\n```\ngangctl list [flags]\n```\n\n### Examples\n\n```\n  gangctl list -A\n```\n\n### Options\n\n```\n  gangctl nothing\n```\n"
	if got := lines("docs/reference/x.md", reference); len(got) != 1 || got[0].Text != "gangctl list -A" || got[0].Number != 10 {
		t.Errorf("got %+v", got)
	}
}

func TestCommands(t *testing.T) {
	for line, want := range map[string][]Command{
		"gangctl list -A -l team=x | head": {{Verb: "list", Flags: map[string]string{"all-namespaces": "true", "selector": "team=x"}}},
		"gangctl submit tf a --image i -- sh -c 'gangctl x | y' && kubectl gang delete a b": {
			{Verb: "submit tf", Args: []string{"a"}, Flags: map[string]string{"image": "i"}}, {Verb: "delete", Args: []string{"a", "b"}, Flags: map[string]string{}}},
		`eval "$(gangctl-sandbox up | tail -n 1)"`:                  nil,
		`source <(gangctl completion bash)`:                         {{Verb: "completion bash", Flags: map[string]string{}}},
		`gangctl completion zsh > "${fpath[1]}/_gangctl"`:           {{Verb: "completion zsh", Flags: map[string]string{}}},
		"gangctl list -o name | xargs gangctl delete":               {{Verb: "list", Flags: map[string]string{"output": "name"}}},
		"GANGCTL_IMAGE=x gangctl version # shows it":                {{Verb: "version", Flags: map[string]string{}}},
		`for j in $(gangctl list -o name); do kubectl get $j; done`: {{Verb: "list", Flags: map[string]string{"output": "name"}}},
	} {
		got, err := Commands(line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		for i := range got {
			if len(got[i].Args) == 0 {
				got[i].Args = nil
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", line, diff)
		}
	}
	for _, line := range []string{"gangctl instal scheduler", "gangctl install sheduler", "gangctl install scheduler --serv x", "gangctl check --no-such", "gangctl config vew"} {
		if _, err := Commands(line); err == nil {
			t.Errorf("%s exists", line)
		}
	}
}
