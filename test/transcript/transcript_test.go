package transcript

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const page = "# A page\n\n<!-- setup: export WHAT=world -->\n```console\n$ echo hello; echo $WHAT \\\n    again\nold\n$ cd / && pwd\n```\n\n" +
	"<!-- until: ^3$ -->\n```console\n$ echo x >> $HOME/count; wc -l < $HOME/count\nold\nold\n```\n\n<!-- lines: 2 -->\n```console\n$ seq 9\n```\n\n" +
	"<!-- screen: x.svg 40x5 red: printf '\\033[31mred\\033[0m\\n'; sleep 1 -->\n\nEnd.\n"

const played = "# A page\n\n<!-- setup: export WHAT=world -->\n```console\n$ echo hello; echo $WHAT \\\n    again\nhello\nworld again\n$ cd / && pwd\n/\n```\n\n" +
	"<!-- until: ^3$ -->\n```console\n$ echo x >> $HOME/count; wc -l < $HOME/count\n3\n```\n\n<!-- lines: 2 -->\n```console\n$ seq 9\n1\n2\n...\n```\n\n" +
	"<!-- screen: x.svg 40x5 red: printf '\\033[31mred\\033[0m\\n'; sleep 1 -->\n\nEnd.\n"

func stage(t *testing.T) *Stage {
	return &Stage{Bin: t.TempDir(), Home: t.TempDir(), Pictures: t.TempDir(), Wait: 20 * time.Second}
}

func TestPlay(t *testing.T) {
	p, err := Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	s := stage(t)
	if err := s.Play(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if p.String() != played {
		t.Errorf("got\n%s", p)
	}
	if picture, err := os.ReadFile(filepath.Join(s.Pictures, "x.svg")); err != nil || !strings.Contains(string(picture), ">red<") {
		t.Errorf("%v\n%s", err, picture)
	}
}

func TestCheck(t *testing.T) {
	p, err := Parse(played)
	if err != nil {
		t.Fatal(err)
	}
	if err := stage(t).Check(t.Context(), p); err != nil {
		t.Error(err)
	}
	wrong, err := Parse("```console\n$ echo one\ntwo\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	s := stage(t)
	s.Wait = time.Second
	if err := s.Check(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "prints\none\n\nand the page says\ntwo") {
		t.Errorf("got %v", err)
	}
}

// A command that fails is not written into a page, and nothing waits indefinitely.
func TestPlayFails(t *testing.T) {
	for text, want := range map[string]string{
		"```console\n$ false\n```\n":                                     "exit code 1",
		"<!-- until: never -->\n```console\n$ echo now\n```\n":           "does not match never",
		"<!-- setup: exit 3 -->\n```console\n$ echo now\n```\n":          "the shell is gone",
		"<!-- screen: x.svg 20x5 never: echo now -->\n```console\n```\n": "not as wanted",
	} {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s := stage(t)
		s.Wait = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := s.Play(ctx, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
		cancel()
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"```console\n$ x\n", "```console\nnobody typed it\n```", "<!-- until: ( -->", "<!-- screen: x.svg wide -->", "<!-- lines: few -->"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is a page", text)
		}
	}
}

func TestNormal(t *testing.T) {
	for in, want := range map[string]string{
		"llama   TFJob   13s   x":            "llama   TFJob   5s    x",
		"age 1m3s":                           "age 4m30s",
		"seen at 2026-11-21 21:08:05Z":       "seen at 2026-01-02 15:04:05Z",
		"ready after 12.3s":                  "ready after 7.5s",
		"at 2026-11-21T20:57:33Z":            "at 2026-01-02T15:04:05Z",
		"https://127.0.0.1:43817 /tmp/x/cfg": "https://127.0.0.1:6443  /home/ann/cfg",
		"tensorflow:2.17.0 4 GPUs":           "tensorflow:2.17.0 4 GPUs",
	} {
		if got := Normal(in, "/tmp/x", "/home/ann"); strings.TrimRight(got, " ") != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	progress := []string{"llama: Pending, 0/5 scheduled, 0/5 running", "llama: Running, 5/5 scheduled, 5/5 running", "llama: waiting for 3 pods", "x"}
	if got := Lasting(progress); !slices.Equal(got, []string{"llama: Running, 5/5 scheduled, 5/5 running", "x"}) {
		t.Errorf("got %q", got)
	}
	if !Alike([]string{"a  node-1 5s 1m"}, []string{"a node-12  1m5s 40s"}) || Alike([]string{"a"}, []string{"b"}) {
		t.Error("other nodes are alike, other words are not")
	}
	if !slices.Equal(bounded([]string{"a"}, 1), []string{"a"}) {
		t.Error("nothing has to be left out")
	}
}
