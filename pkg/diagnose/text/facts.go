package text

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

// stages are on one line: what stopped it stands in capitals.
func (w *writer) stages() {
	var parts []string
	for _, s := range w.a.Stages {
		if s.State == answer.StateSkipped {
			continue
		}
		name := string(s.Name)
		text := name + " " + s.State
		switch s.State {
		case answer.StateBlocked, answer.StateWaiting:
			text = strings.ToUpper(name)
		case answer.StateUnknown:
			text = name + " unknown"
		}
		if s.Note != "" {
			text += " " + s.Note
		}
		parts = append(parts, text)
	}
	if len(parts) > 0 {
		w.list("Stages  ", parts)
	}
}

// nodes sums up which nodes take members, and why the others do not.
func (w *writer) nodes() {
	n := w.a.Nodes
	if n == nil {
		return
	}
	w.line("Nodes   %d in all, %d would take a member now", n.Total, n.Eligible)
	several := len(w.a.Gang.Roles) > 1
	for _, x := range n.Excluded {
		role := ""
		if several {
			role = " " + x.Role
		}
		sole := ""
		if x.OnlyBlocker > 0 {
			sole = fmt.Sprintf(", for %d the only reason", x.OnlyBlocker)
		}
		w.fold(fmt.Sprintf("  %-*d ", max(3, len(strconv.Itoa(n.Total))), x.Rejects), strings.TrimSpace(fmt.Sprintf("%s %s%s: %s", role, x.Constraint, sole, phrase.FirstNames(x.Nodes, x.Rejects))))
	}
	if w.o.Verbose {
		for _, row := range n.Rows {
			w.row(row)
		}
		for _, s := range n.Slots {
			w.fold("  ", fmt.Sprintf("free on %s: %s", phrase.FirstNames(s.Nodes, max(s.Count, len(s.Nodes))), free(s)))
		}
	}
	if len(w.a.Placement) > 0 && !w.a.Verdict.Starts() {
		w.line("  there is room: it fits, as far as nodes go")
	}
	for _, p := range placementLines(w.a.Placement) {
		w.fold("  ", p)
	}
}

func free(s answer.Slot) string {
	var parts []string
	for name, q := range s.Free {
		parts = append(parts, fmt.Sprintf("%s %s", q.String(), name))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// placementLines list where the members would go.
func placementLines(placed []answer.Placed) []string {
	byNode := map[string][]string{}
	for _, p := range placed {
		byNode[p.Node] = append(byNode[p.Node], p.Member)
	}
	var lines []string
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		lines = append(lines, fmt.Sprintf("%s would take %s", node, phrase.Names(byNode[node])))
	}
	if len(lines) > 8 {
		lines = append(lines[:8], fmt.Sprintf("and %d more nodes", len(lines)-8))
	}
	return lines
}

// row is one node for one role.
func (w *writer) row(row answer.NodeRow) {
	text := "takes it"
	if row.Undecided {
		text = "not known: the search for devices took too long"
	}
	if len(row.Violations) > 0 {
		var parts []string
		for _, v := range row.Violations {
			parts = append(parts, violation(v))
		}
		text = strings.Join(parts, "; ")
	}
	w.foldUnder("  ", "      ", fmt.Sprintf("%s  %s: %s", row.Node, row.Role, text))
	if len(row.Consumers) > 0 {
		w.fold("      ", "held by "+phrase.Names(row.Consumers))
	}
}

// violation is a constraint as text: with requested, available and total where it is about an amount.
func violation(v answer.Violation) string {
	if v.Requested == "" {
		return strings.TrimSpace(v.Constraint + " " + v.Detail)
	}
	name := strings.TrimPrefix(v.Constraint, "resource:")
	text := fmt.Sprintf("%s: requested %s, available %s, total %s", name, v.Requested, v.Available, v.Total)
	if v.Never {
		text += " (never)"
	}
	return text
}

// why answers why not one node.
func (w *writer) why() {
	if w.o.Node == "" {
		return
	}
	w.line("")
	if w.a.Nodes == nil {
		w.line("Why not %s: nothing was placed, so no node was evaluated", w.o.Node)
		return
	}
	known := false
	for _, row := range w.a.Nodes.Rows {
		if row.Node != w.o.Node {
			continue
		}
		if !known {
			w.line("Why not %s", row.Node)
		}
		known = true
		w.row(row)
	}
	if !known {
		w.line("Why not %s: there is no such node", w.o.Node)
	}
}

// scheduler writes the scheduler's last message, with its age.
func (w *writer) scheduler() {
	s := w.a.Scheduler
	if s == nil || s.Message == "" {
		return
	}
	var remarks []string
	if s.MessageAt != nil && w.a.Snapshot.At != nil {
		remarks = append(remarks, phrase.Age(w.a.Snapshot.At.Sub(*s.MessageAt))+" ago")
	}
	if s.Agrees != nil {
		remarks = append(remarks, map[bool]string{true: "agrees", false: "disagrees"}[*s.Agrees])
	}
	if s.Stale {
		remarks = append(remarks, "stale")
	}
	text, what := "Scheduler "+s.Name+" reported", ": "+s.Message
	if w.repeats(s.Message) {
		text, what = text+" the same", ""
	}
	if len(remarks) > 0 {
		text += " (" + strings.Join(remarks, ", ") + ")"
	}
	w.foldUnder("", "  ", text+what)
}

// repeats reports whether a message is the first line of the answer once more, such as our scheduler publishes it: perhaps shortened.
func (w *writer) repeats(message string) bool {
	plain := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	line, message := plain(w.a.Line()), plain(message)
	start, shortened := strings.CutSuffix(message, "…")
	return message == line || shortened && start != "" && strings.HasPrefix(line, start)
}

func (w *writer) confidence() {
	c := w.a.Confidence
	text := "Confidence " + c.Level
	if len(c.Unmodelled) > 0 {
		text += "; not modelled: " + strings.Join(c.Unmodelled, ", ")
	}
	if c.Cut {
		text += "; a search took too long"
	}
	if at := w.a.Snapshot.At; at != nil {
		text += "; seen at " + at.UTC().Format("2006-01-02 15:04:05Z")
	}
	w.foldUnder("", "  ", text)
	for _, n := range w.a.Notes {
		w.fold("Note  ", n)
	}
}
