package get

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

var columns = []printer.Column{
	{Name: "Member"}, {Name: "Pod"}, {Name: "State"}, {Name: "Node"}, {Name: "GPUs"}, {Name: "Age"},
	{Name: "IP", Wide: true}, {Name: "Reason"},
}

// style says how a state looks; the word is there without it.
func style(s gang.State) iostreams.Style {
	switch s {
	case gang.Running, gang.Succeeded:
		return iostreams.Green
	case gang.Failed, gang.Degraded:
		return iostreams.Red
	default:
		return iostreams.Yellow
	}
}

func (o *Options) print(job *gang.Job, s summary.Summary) error {
	now := o.IO.Clock.Now()
	if !o.Output.NoHeaders {
		o.printSummary(job, s, now)
	}
	rows := make([][]string, 0, len(s.Rows))
	said := map[string]string{s.Reason: asAbove}
	for _, m := range s.Rows {
		pod, ip, since := "-", "-", "-"
		if m.Pod != nil {
			pod, since = m.Pod.Name, age(m.Pod.CreationTimestamp.Time, now)
			if m.Pod.Status.PodIP != "" {
				ip = m.Pod.Status.PodIP
			}
		}
		node := m.Node()
		if node == "" {
			node = "-"
		}
		rows = append(rows, []string{m.Name(), pod, string(m.State), node, strconv.FormatInt(m.GPUs, 10), since, ip, o.why(m, said)})
	}
	return printer.PrintTable(o.IO.Out, o.Output, o.IO.Width(), columns, rows)
}

const (
	// asAbove stands for what the summary says of the whole gang.
	asAbove = "as above"
	// shortReason is how long a reason may be to be said of each member.
	shortReason = 40
)

// why is why a member does not run. What was said before is not said again: a gang that waits would fill the screen with one
// sentence. Rows alone, as scripts read them, are each complete.
func (o *Options) why(m summary.Row, said map[string]string) string {
	if o.Output.NoHeaders || len(m.Reason) <= shortReason {
		return m.Reason
	}
	if before := said[m.Reason]; before != "" {
		return before
	}
	said[m.Reason] = "as " + m.Name()
	return m.Reason
}

func (o *Options) printSummary(job *gang.Job, s summary.Summary, now time.Time) {
	line := func(label, value string) { fmt.Fprintf(o.IO.Out, "%-11s%s\n", label+":", value) }
	line("Name", job.Name())
	line("Kind", job.Kind.Kind)
	line("State", o.IO.OutStyled(style(s.State), string(s.State)))
	line("Ready", fmt.Sprintf("%d/%d", s.Ready, s.Total))
	line("Gang", gangName(s))
	line("Scheduler", s.Scheduler)
	line("GPUs", strconv.FormatInt(s.GPUs, 10))
	line("Age", age(job.Meta.CreationTimestamp.Time, now))
	if s.Reason != "" {
		line("Reason", s.Reason)
	}
	fmt.Fprintln(o.IO.Out)
}

func gangName(s summary.Summary) string {
	if s.Dialect == "" {
		return "none: the job does not say that its members belong together"
	}
	return fmt.Sprintf("%d of %d members start together (%s)", s.MinAvailable, s.Total, s.Dialect)
}

func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(since))
}
