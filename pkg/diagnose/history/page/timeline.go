package page

import (
	"cmp"
	"slices"
	"time"

	"github.com/gangctl/gangctl/pkg/diagnose/history"
)

const (
	// startShare is the share of the whole below which the start of a gang is too short to be seen, and gets a picture of its own.
	startShare = 0.15
	// openRows is how many members are shown at once; the others are folded away.
	openRows = 128
)

// panel is one picture of the timeline: all members over one stretch of time.
type panel struct {
	Title    string
	From, To time.Time
	Ticks    []tick
	Moments  []moment
	Rows     []row
	// Folded are the rows beyond those that are shown at once.
	Folded []row
}

// moment is a step of the gang as a whole: a line over all rows.
type moment struct {
	Left float64
	Name string
	At   time.Time
}

// row is one member.
type row struct {
	Name string
	// Note is what it waits for, or where it is.
	Note  string
	Bars  []bar
	Marks []mark
}

// bar is a phase.
type bar struct {
	Kind        history.PhaseKind
	Left, Width float64
	Text        string
}

// mark is a moment of a member.
type mark struct {
	Kind   history.MarkKind
	Left   float64
	Symbol string
	Text   string
}

// symbols are what marks look like; they differ without colour.
var symbols = map[history.MarkKind]string{history.Done: "✓", history.Died: "✕", history.Restarted: "↻", history.Replaced: "⇄", history.Leaving: "▼"}

// panels are the pictures: the whole life, and before that its start where it is too short to be seen in it.
func panels(r *history.Report) []panel {
	from, to := bounds(r)
	all := []panel{newPanel(r, "The whole life", newScale(from, to))}
	if ready := startUntil(r); !ready.IsZero() {
		if share := float64(ready.Sub(from)) / float64(max(1, to.Sub(from))); share < startShare && ready.After(from) {
			begin := newPanel(r, "The start", newScale(from, ready.Add(ready.Sub(from)/6)))
			all = append([]panel{begin}, all...)
		}
	}
	return all
}

// bounds are the first and the last moment that is known.
func bounds(r *history.Report) (from, to time.Time) {
	from, to = r.At, r.At
	if r.Job.Created != nil {
		from = *r.Job.Created
	}
	if r.Job.Ended != nil {
		to = *r.Job.Ended
	}
	for _, l := range r.Lanes {
		for _, p := range l.Phases {
			if p.From.Before(from) {
				from = p.From
			}
			if p.To != nil && p.To.After(to) {
				to = *p.To
			}
		}
	}
	return from, to
}

// startUntil is when the gang was ready for the first time, as far as is known; zero if it was not.
func startUntil(r *history.Report) time.Time {
	var last time.Time
	for _, l := range r.Lanes {
		i := slices.IndexFunc(l.Phases, func(p history.Phase) bool { return p.Kind == history.Running })
		if i < 0 {
			return time.Time{}
		}
		if l.Phases[i].From.After(last) {
			last = l.Phases[i].From
		}
	}
	return last
}

func newPanel(r *history.Report, title string, s scale) panel {
	p := panel{Title: title, From: s.from, To: s.to, Ticks: s.ticks()}
	for _, step := range r.Steps {
		if step.At != nil && s.has(*step.At) {
			p.Moments = append(p.Moments, moment{s.at(*step.At), step.Name, *step.At})
		}
	}
	for _, l := range r.Lanes {
		p.Rows = append(p.Rows, newRow(l, s, r.At))
	}
	if len(p.Rows) > openRows {
		p.Rows, p.Folded = p.Rows[:openRows], p.Rows[openRows:]
	}
	return p
}

func newRow(l history.Lane, s scale, now time.Time) row {
	out := row{Name: l.Member, Note: l.Node}
	for _, p := range l.Phases {
		end := now
		if p.To != nil {
			end = *p.To
		}
		if end.Before(s.from) || p.From.After(s.to) {
			continue
		}
		left := s.at(p.From)
		out.Bars = append(out.Bars, bar{p.Kind, left, max(s.at(end)-left, 0.2), phaseText(p, end)})
	}
	for _, m := range l.Marks {
		if s.has(m.At) {
			out.Marks = append(out.Marks, mark{m.Kind, s.at(m.At), symbols[m.Kind], string(m.Kind) + " at " + clock(m.At) + suffix(m.Note)})
		}
	}
	slices.SortStableFunc(out.Marks, func(a, b mark) int { return cmp.Compare(a.Left, b.Left) })
	return out
}

// phaseText is the tooltip of a phase.
func phaseText(p history.Phase, end time.Time) string {
	text := phaseNames[p.Kind] + " for " + span(end.Sub(p.From)) + ", from " + clock(p.From)
	if p.To == nil {
		return text + " until now" + suffix(p.Note)
	}
	return text + " to " + clock(end) + suffix(p.Note)
}

// phaseNames are the phases as readers see them.
var phaseNames = map[history.PhaseKind]string{history.Absent: "no pod", history.Pending: "waits for a node", history.Starting: "starts", history.Unready: "runs, not ready",
	history.Running: "runs", history.Down: "waits to be started again"}

func suffix(note string) string {
	if note == "" {
		return ""
	}
	return ": " + note
}

// clock is a moment of the day, in UTC.
func clock(t time.Time) string { return t.UTC().Format("15:04:05") }
