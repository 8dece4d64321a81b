// Package report writes answers for people: the first line is the verdict with one sentence, then what starts the gang, then
// why, and last the scheduler's own words. It needs no colour, and its order never changes.
package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
)

// Options say how much to write.
type Options struct {
	// Quiet writes the first line only; Verbose writes every node.
	Quiet, Verbose bool
	// Node asks why not this node.
	Node string
	// Style decorates the verdict; nil leaves it as it is.
	Style func(answer.Verdict, string) string
}

// Write writes one answer.
func Write(out io.Writer, a *answer.Answer, o Options) error {
	w := &writer{out: out, a: a, o: o}
	w.line("%s", First(a, o.Style))
	if !o.Quiet {
		w.body()
	}
	return w.err
}

// First is the first line.
func First(a *answer.Answer, style func(answer.Verdict, string) string) string {
	word := string(a.Verdict)
	if style != nil {
		word = style(a.Verdict, word)
	}
	return word + "  " + a.Headline
}

type writer struct {
	out io.Writer
	a   *answer.Answer
	o   Options
	err error
}

func (w *writer) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintln(w.out, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

func (w *writer) body() {
	a := w.a
	if f := a.Primary; f != nil {
		for _, d := range f.Details {
			w.line("  %s", d)
		}
	}
	w.holding()
	w.ends()
	w.actions()
	if f := a.Primary; f != nil {
		w.look(f.Commands)
	}
	w.also()
	w.line("")
	w.stages()
	w.nodes()
	w.why()
	w.scheduler()
	w.confidence()
}

// look lists commands that show more.
func (w *writer) look(commands []string) {
	if len(commands) == 0 {
		return
	}
	w.line("")
	for i, c := range commands {
		label := ""
		if i == 0 {
			label = "See"
		}
		w.line("%-6s%s", label, c)
	}
}

func (w *writer) holding() {
	h := w.a.Holding
	if h.GPUs == 0 || h.Since == nil || w.a.Snapshot.At == nil {
		return
	}
	d := w.a.Snapshot.At.Sub(*h.Since)
	w.line("  its members hold %s, idle for %s (%d GPU minutes)", phrase.Count(h.GPUs, "GPU"), phrase.Age(d), h.GPUs*int64(d/time.Minute))
}

// ends lists what the gang waits for, if waiting helps.
func (w *writer) ends() {
	first := true
	for _, x := range w.a.Unblock {
		if x.Kind != answer.Wait {
			continue
		}
		label := "               or when"
		if first {
			w.line("")
			label = "Starts by itself when"
			first = false
		}
		eta := "no end known"
		if x.ETA != nil && w.a.Snapshot.At != nil {
			eta = fmt.Sprintf("estimate %s (%s)", phrase.Clock(*x.ETA, *w.a.Snapshot.At), x.ETASource)
		}
		w.line("%s  %s   %s", label, x.Text, eta)
	}
}

func (w *writer) actions() {
	for _, by := range []answer.Who{answer.User, answer.Nobody, answer.Admin} {
		first := true
		for _, x := range w.a.Unblock {
			if x.By != by || x.Kind == answer.Wait {
				continue
			}
			if first {
				w.line("")
				w.line("%s", map[answer.Who]string{answer.User: "You can", answer.Admin: "An administrator can", answer.Nobody: "Or"}[by])
				first = false
			}
			w.action(x)
		}
	}
}

func (w *writer) action(x answer.Action) {
	text := x.Text
	if x.Cost != "" {
		text += " (" + x.Cost + ")"
	}
	where := ""
	if len(x.Placement) > 0 {
		where = "   verified: " + strings.Join(placedOn(x.Placement), " ")
	} else if x.Verified {
		where = "   verified"
	}
	w.line("  %s%s", text, where)
	for _, c := range strings.Split(x.Command, "\n") {
		if c != "" {
			w.line("    %s", c)
		}
	}
}

// placedOn are the nodes of a placement, each once, in order.
func placedOn(placed []answer.Placed) []string {
	var nodes []string
	seen := map[string]bool{}
	for _, p := range placed {
		if !seen[p.Node] {
			seen[p.Node] = true
			nodes = append(nodes, p.Node)
		}
	}
	if len(nodes) > 6 {
		return append(nodes[:6:6], fmt.Sprintf("+%d", len(nodes)-6))
	}
	return nodes
}

func (w *writer) also() {
	for i, f := range w.a.AlsoBlocking {
		if i == 0 {
			w.line("")
			w.line("Also in the way")
		}
		w.line("  %s  %s", f.Code, f.Message)
		for _, d := range f.Details {
			w.line("    %s", d)
		}
	}
}
