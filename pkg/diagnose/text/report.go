// Package text writes answers for people: the first line is the verdict with one sentence, then what starts the gang, then
// why, and last the scheduler's own message. It needs no colour, and its order never changes.
package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

// Options are how much to write.
type Options struct {
	// Quiet writes the first line only; Verbose writes every node.
	Quiet, Verbose bool
	// Node is the node of "why not this node".
	Node string
	// Style decorates the verdict; nil leaves it as it is.
	Style func(answer.Verdict, string) string
	// Width is the number of columns at which text is broken between words; 0 never breaks it. Commands are never broken.
	Width int
	// Commands completes the commands in a text for whoever types them, the user or an administrator; nil leaves them as they are.
	Commands func(text string, by answer.Who) string
}

// Write writes one answer.
func Write(out io.Writer, a *answer.Answer, o Options) error {
	w := &writer{out: out, a: a, o: o}
	w.first()
	if !o.Quiet {
		w.body()
	}
	return w.err
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

// complete completes the commands in a text for whoever types them.
func (w *writer) complete(text string, by answer.Who) string {
	if w.o.Commands == nil {
		return text
	}
	return w.o.Commands(text, by)
}

func (w *writer) body() {
	a := w.a
	w.details()
	w.holding()
	w.ends()
	w.actions()
	if f := a.Primary; f != nil {
		w.look(f.Commands)
	}
	w.also()
	if a.Primary == nil && len(a.AlsoBlocking) > 0 {
		w.look(a.AlsoBlocking[0].Commands)
	}
	w.rights()
	w.line("")
	w.stages()
	w.nodes()
	w.why()
	w.scheduler()
	w.confidence()
}

// maxDetails is how many lines about the first reason are shown; Verbose shows all. One more than that needs no line to announce it.
const maxDetails = 6

// details are further facts about the first reason, such as who has the room.
func (w *writer) details() {
	f := w.a.Primary
	if f == nil {
		return
	}
	details := f.Details
	if !w.o.Verbose && len(details) > maxDetails+1 {
		details = details[:maxDetails]
	}
	for _, d := range details {
		w.fold("  ", w.complete(d, answer.User))
	}
	w.more(len(f.Details) - len(details))
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
		w.line("%-6s%s", label, w.complete(c, answer.User))
	}
}

func (w *writer) holding() {
	h := w.a.Holding
	if h.GPUs == 0 || h.Since == nil || w.a.Snapshot.At == nil {
		return
	}
	d := w.a.Snapshot.At.Sub(*h.Since)
	lost := ""
	if minutes := int64(float64(h.GPUs)*d.Minutes() + 0.5); minutes > 0 {
		lost = " (" + phrase.Count(minutes, "GPU minute") + ")"
	}
	w.fold("  ", fmt.Sprintf("its members hold %s, idle for %s%s", phrase.Count(h.GPUs, "GPU"), phrase.Age(d), lost))
}

// printed are the commands that stand above what else is in the way.
func (w *writer) printed() map[string]bool {
	all := map[string]bool{}
	for _, a := range w.a.Unblock {
		for _, c := range strings.Split(a.Command, "\n") {
			all[c] = true
		}
	}
	first := w.a.Primary
	if first == nil && len(w.a.AlsoBlocking) > 0 {
		first = &w.a.AlsoBlocking[0] // whose commands stand below all
	}
	if first != nil {
		for _, c := range first.Commands {
			all[c] = true
		}
	}
	return all
}

// also lists what else is in the way, each with a command that shows more, or makes what is missing.
func (w *writer) also() {
	titled := false
	shown, printed := map[string]bool{}, w.printed()
	if w.a.Primary != nil {
		shown[w.a.Primary.Message] = true
	}
	for _, f := range w.a.AlsoBlocking {
		if shown[f.Message] {
			continue // the same of another role
		}
		if shown[f.Message] = true; !titled {
			titled = true
			w.line("")
			w.line("%s", map[bool]string{true: "Also in the way", false: "In the way of the members that do not run"}[w.a.Primary != nil])
		}
		w.foldUnder("  ", "    ", string(f.Code)+"  "+f.Message)
		for _, d := range f.Details {
			w.fold("    ", w.complete(d, answer.User))
		}
		if i := slices.IndexFunc(f.Commands, func(c string) bool { return !printed[c] }); i >= 0 {
			printed[f.Commands[i]] = true
			w.line("    See   %s", w.complete(f.Commands[i], answer.User))
		}
	}
}
