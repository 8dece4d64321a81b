package text_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	answertext "github.com/gangctl/gangctl/pkg/diagnose/text"
)

func written(t *testing.T, a *answer.Answer, o answertext.Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := answertext.Write(&out, a, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// pasted reports whether a line is there to be copied: it must not be broken.
func pasted(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "kubectl ") || strings.HasPrefix(line, "gangctl ") || strings.HasPrefix(line, "See ")
}

// At a width, no line is longer, save one with a single word after its label or a command; and nothing is lost or added.
func TestWidth(t *testing.T) {
	clusters := map[string]func(*clustertest.Cluster){
		"long names": long,
		"rights": func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8})
			refuse(c)
		},
	}
	for name, build := range clusters {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New()
			build(c)
			a, err := diagnose.Explain(context.Background(), c.Done(), diagnose.Query{Namespace: "team", Name: "llama"}, diagnose.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []answertext.Options{{}, {Verbose: true}, {Quiet: true}} {
				unbroken := written(t, a, o)
				if first, _, _ := strings.Cut(unbroken, "\n"); first != string(a.Verdict)+"  "+a.Headline {
					t.Errorf("the first line of a pipe is broken: %s", first)
				}
				for _, width := range []int{80, 60} {
					o.Width = width
					text := written(t, a, o)
					if !sameText(text, unbroken) {
						t.Errorf("width %d changes the text", width)
					}
					for line := range strings.Lines(text) {
						line = strings.TrimSuffix(line, "\n")
						if fields := len(strings.Fields(line)); len([]rune(line)) > width && !pasted(line) && fields > 3 {
							t.Errorf("%d columns at width %d: %s", len([]rune(line)), width, line)
						}
					}
				}
			}
		})
	}
}

// sameText compares texts without the dots between parts of a line, which a break replaces.
func sameText(a, b string) bool {
	fields := func(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, "·", " ")), " ") }
	return fields(a) == fields(b)
}

// The style goes around the verdict alone, and is not counted.
func TestStyle(t *testing.T) {
	a := &answer.Answer{Verdict: answer.Waiting, Headline: "one two three four five six"}
	style := func(_ answer.Verdict, verdict string) string { return "\x1b[33m" + verdict + "\x1b[0m" }
	want := "\x1b[33mWAITING\x1b[0m  one two\n         three four\n         five six\n"
	if got := written(t, a, answertext.Options{Quiet: true, Style: style, Width: 20}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// A name that is too long for any line stays whole.
	a.Headline = "a-name-that-is-longer-than-any-line waits"
	if got := written(t, a, answertext.Options{Quiet: true, Width: 20}); got != "WAITING  a-name-that-is-longer-than-any-line\n         waits\n" {
		t.Errorf("got %q", got)
	}
}
