package page

import (
	"bytes"
	"html/template"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/history"
	answertext "github.com/gangctl/gangctl/pkg/diagnose/text"
)

// view is the data of the template.
type view struct {
	*history.Report
	Style  template.CSS
	Tone   string
	Facts  []fact
	Panels []panel
	Legend []history.PhaseKind
	Marked []history.MarkKind
	Cards  []card
	// Answer is the whole answer of now as why-pending prints it.
	Answer string
	// Advice are the actions that can be taken.
	Advice []answer.Action
	// Also are the findings after the first.
	Also []answer.Finding
}

// fact is one number or name about the job.
type fact struct{ Name, Value string }

func newView(r *history.Report, style template.CSS) (*view, error) {
	v := &view{Report: r, Style: style, Tone: tone(string(r.Job.State)), Facts: facts(r), Panels: panels(r), Cards: cards(r)}
	v.Legend, v.Marked = legend(r)
	if r.Now != nil {
		var out bytes.Buffer
		if err := answertext.Write(&out, r.Now, answertext.Options{Width: 100}); err != nil {
			return nil, err
		}
		v.Answer = strings.TrimSpace(out.String())
		v.Advice, v.Also = r.Now.Unblock, r.Now.AlsoBlocking
	}
	return v, nil
}

// facts are the job at a glance.
func facts(r *history.Report) []fact {
	j := r.Job
	all := []fact{{"Ready", count(j.Ready) + " of " + count(j.Total)}}
	if j.Min != j.Total {
		all = append(all, fact{"Needs", count(j.Min) + " at once"})
	}
	if j.GPUs > 0 {
		all = append(all, fact{"GPUs", count(j.GPUs)})
	}
	all = append(all, fact{"Restarts", count(j.Restarts)})
	if j.Created != nil {
		all = append(all, fact{"Submitted", day(*j.Created)})
		if ready := startUntil(r); !ready.IsZero() {
			all = append(all, fact{"Ready after", span(ready.Sub(*j.Created))})
		}
		end := r.At
		if j.Ended != nil {
			end = *j.Ended
			all = append(all, fact{"Ended", day(*j.Ended)})
		}
		all = append(all, fact{"Age", span(end.Sub(*j.Created))})
	}
	for _, f := range []fact{{"Queue", j.Queue}, {"Scheduler", j.Scheduler}, {"Gang by", j.Dialect}, {"How it ended", j.EndReason}} {
		if f.Value != "" {
			all = append(all, f)
		}
	}
	return all
}

// legend are the phases and the marks that occur.
func legend(r *history.Report) (phases []history.PhaseKind, marks []history.MarkKind) {
	for _, kind := range []history.PhaseKind{history.Absent, history.Pending, history.Starting, history.Unready, history.Running, history.Down} {
		if slices.ContainsFunc(r.Lanes, func(l history.Lane) bool {
			return slices.ContainsFunc(l.Phases, func(p history.Phase) bool { return p.Kind == kind })
		}) {
			phases = append(phases, kind)
		}
	}
	for _, kind := range []history.MarkKind{history.Restarted, history.Replaced, history.Leaving, history.Done, history.Died} {
		if slices.ContainsFunc(r.Lanes, func(l history.Lane) bool {
			return slices.ContainsFunc(l.Marks, func(m history.Mark) bool { return m.Kind == kind })
		}) {
			marks = append(marks, kind)
		}
	}
	return phases, marks
}

// tone is how grave a state or a verdict is, for its colour; the name is there without it.
func tone(state string) string {
	switch state {
	case "Running", "Succeeded", string(answer.Running), string(answer.Done):
		return "good"
	case "Pending", "Starting", "Suspended", string(answer.Waiting), string(answer.Starting), string(answer.FitsNow), string(answer.Uncertain):
		return "wait"
	}
	return "bad"
}

// requests are those of a role as text.
func requests(list corev1.ResourceList) string {
	var parts []string
	for name, q := range list {
		parts = append(parts, string(name)+" "+q.String())
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }
