package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

// shown is how many ways are shown to each who can act, and how many sets of jobs to wait for; Verbose shows all.
const shown = 4

// ends lists what the gang waits for, if waiting helps.
func (w *writer) ends() {
	waits, more := w.some(answer.Nobody)
	label := "Starts by itself when  "
	for i, x := range waits {
		if i == 0 {
			w.line("")
		}
		if i == 0 && !x.Verified {
			label = "May start by itself when  "
		}
		eta := "no end known"
		if x.ETA != nil && w.a.Snapshot.At != nil {
			eta = fmt.Sprintf("earliest estimate %s (%s)", phrase.Clock(*x.ETA, *w.a.Snapshot.At), x.ETASource)
		}
		w.pair(label, x.Text, eta)
		label = "               or when  "
	}
	w.more(more)
}

func (w *writer) actions() {
	for _, by := range []answer.Who{answer.User, answer.Admin} {
		actions, more := w.some(by)
		for i, x := range actions {
			if i == 0 {
				w.line("")
				w.fold("", map[answer.Who]string{answer.User: "You can", answer.Admin: "An administrator can"}[by]+w.verified(actions))
			}
			w.action(x)
		}
		w.more(more)
	}
	if len(w.a.Cut) > 0 {
		var kinds []string
		for _, kind := range w.a.Cut {
			kinds = append(kinds, string(kind))
		}
		w.line("")
		w.fold("", "Out of time before everything was tried ("+strings.Join(kinds, ", ")+"): there may be more ways, or better ones")
	}
}

// some are the actions of one who can act, in their order, and how many are left out: of each kind the best first.
func (w *writer) some(by answer.Who) (actions []answer.Action, more int) {
	var all []answer.Action
	for _, x := range w.a.Unblock {
		if x.By == by {
			all = append(all, x)
		}
	}
	if w.o.Verbose || len(all) <= shown {
		return all, 0
	}
	chosen := make([]bool, len(all))
	left := shown
	for _, best := range []bool{true, false} {
		seen := map[answer.ActionKind]bool{}
		for i, x := range all {
			if left > 0 && !chosen[i] && (!best || !seen[x.Kind]) {
				chosen[i], left = true, left-1
			}
			seen[x.Kind] = true
		}
	}
	for i, x := range all {
		if chosen[i] {
			actions = append(actions, x)
		}
	}
	return actions, len(all) - len(actions)
}

func (w *writer) more(n int) {
	if n > 0 {
		w.line("  and %d more, with -v", n)
	}
}

// verified ends the title of actions: whether they were tried. Where that differs between them, each has it by itself.
func (w *writer) verified(actions []answer.Action) string {
	all := !slices.ContainsFunc(actions, func(x answer.Action) bool { return !x.Verified })
	switch {
	case w.o.Verbose:
		return "" // each has where its members would go
	case all:
		return " (verified)"
	case len(w.a.Confidence.Unmodelled) > 0:
		return " (not verified: " + phrase.And(w.a.Confidence.Unmodelled) + ")"
	}
	return ""
}

// action writes one action: on one line if what does it fits there, else with that below.
func (w *writer) action(x answer.Action) {
	text := x.Text
	if x.Cost != "" && (w.o.Verbose || x.Cost != answer.LessCompute) { // which the sentence shows
		text += " (" + x.Cost + ")"
	}
	label := "  "
	if x.Number > 0 {
		label = fmt.Sprintf("  [%d] ", x.Number)
	}
	does, how := commands(x, w.o.Verbose), w.complete(x.How, x.By)
	for i := range does {
		does[i] = w.complete(does[i], x.By)
	}
	if w.o.Verbose {
		w.pair(label, text, w.where(x))
	} else if line := label + text + "   " + strings.Join(append(does, how), ""); w.fits(line) && (len(does) == 0 || len(does) == 1 && how == "") {
		w.line("%s", line)
		return
	} else {
		w.fold(label, text)
	}
	indent := strings.Repeat(" ", max(4, len(label)))
	for _, c := range does {
		w.line("%s%s", indent, c) // never broken: it is there to be pasted
	}
	if how != "" {
		w.fold(indent, how)
	}
}

// where is where members would go after an action, if that was tried.
func (w *writer) where(x answer.Action) string {
	switch {
	case !x.Verified && len(w.a.Confidence.Unmodelled) > 0:
		return "not verified: " + phrase.And(w.a.Confidence.Unmodelled)
	case len(x.Placement) > 0:
		return "verified: " + strings.Join(placedOn(x.Placement), " ")
	case x.Verified:
		return "verified"
	}
	return ""
}

// commands are those that do an action, a line each: gangctl's where it can, and kubectl's where it cannot, or for a verbose reader.
func commands(x answer.Action, verbose bool) []string {
	var lines []string
	if x.Resize != "" {
		lines = append(lines, x.Resize)
	}
	if x.Resize == "" || verbose {
		lines = append(lines, strings.Split(x.Command, "\n")...)
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// pair writes a text and a remark on it: on one line if they fit there, else the remark below.
func (w *writer) pair(label, text, remark string) {
	if line := label + text + "   " + remark; w.fits(line) {
		w.line("%s", line)
		return
	}
	w.fold(label, text)
	if remark != "" {
		w.fold(strings.Repeat(" ", max(4, len(label))), remark)
	}
}

// placedOn are the nodes of a placement, each once, in order.
func placedOn(placed []answer.Placed) []string {
	var nodes []string
	for _, p := range placed {
		if !slices.Contains(nodes, p.Node) {
			nodes = append(nodes, p.Node)
		}
	}
	if len(nodes) > 6 {
		return append(nodes[:6:6], fmt.Sprintf("+%d", len(nodes)-6))
	}
	return nodes
}
