package get

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

var columns = []printer.Column{
	{Name: "Member"}, {Name: "Pod", Spare: 2}, {Name: "State"}, {Name: "Node", Spare: 1}, {Name: "GPUs", Spare: 4}, {Name: "Age", Spare: 5},
	{Name: "IP", Wide: true, Spare: 3}, {Name: "Reason"},
}

// style is how a state looks; its name is there without it.
func style(s gang.State) iostreams.Style {
	switch s {
	case gang.Running, gang.Succeeded:
		return iostreams.Green
	case gang.Failed, gang.Degraded, gang.Lost:
		return iostreams.Red
	default:
		return iostreams.Yellow
	}
}

// Print prints a job and its members. Without headers only the rows of the members are left.
func Print(io *iostreams.IOStreams, output printer.Flags, job *gang.Job, s summary.Summary) error {
	now := io.Clock.Now()
	if !output.NoHeaders {
		if err := printSummary(io, job, s, now); err != nil {
			return err
		}
	}
	rows := make([][]string, 0, len(s.Rows))
	shown := map[string]string{s.Reason: asAbove}
	for _, m := range s.Rows {
		pod, ip, since, reason := "-", "-", "-", m.Reason
		if m.Pod != nil {
			pod, since, ip = m.Pod.Name, phrase.Since(m.Pod.CreationTimestamp.Time, now), cmp.Or(m.Pod.Status.PodIP, "-")
		}
		if !output.NoHeaders { // rows alone, as scripts read them, are each complete
			reason = once(m, shown)
		}
		rows = append(rows, []string{m.Name(), pod, string(m.State), cmp.Or(m.Node(), "-"), strconv.FormatInt(m.GPUs, 10), since, ip, reason})
	}
	return printer.PrintTable(io.Out, output, io.Width(), columns, rows)
}

const (
	// asAbove stands for the reason in the summary of the whole gang.
	asAbove = "as above"
	// shortReason is the length up to which a reason is repeated for each member.
	shortReason = 40
)

// once returns why a member does not run, or where the same reason is shown already: a gang that waits would fill the screen with
// one sentence.
func once(m summary.Row, shown map[string]string) string {
	if len(m.Reason) <= shortReason {
		return m.Reason
	}
	if before := shown[m.Reason]; before != "" {
		return before
	}
	shown[m.Reason] = "as " + m.Name()
	return m.Reason
}

func printSummary(io *iostreams.IOStreams, job *gang.Job, s summary.Summary, now time.Time) error {
	err := printer.PrintFields(io.Out, "", io.Width(), []printer.Field{
		{Label: "Name", Value: job.Name()},
		{Label: "Kind", Value: job.Kind.Kind},
		{Label: "State", Value: io.OutStyled(style(s.State), string(s.State))},
		{Label: "Ready", Value: fmt.Sprintf("%d/%d", s.Ready, s.Total)},
		{Label: "Gang", Value: gangName(s)},
		{Label: "Scheduler", Value: s.Scheduler},
		{Label: "GPUs", Value: strconv.FormatInt(s.GPUs, 10)},
		{Label: "Age", Value: phrase.Since(job.Meta.CreationTimestamp.Time, now)},
		{Label: "Reason", Value: s.Reason},
	}...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(io.Out)
	return err
}

func gangName(s summary.Summary) string {
	if s.Dialect == "" {
		return "none: the job does not declare that its members belong together"
	}
	if len(s.Roles) > 0 {
		steps := make([]string, len(s.Roles))
		for i, role := range s.Roles {
			steps[i] = fmt.Sprintf("%d of %d %s", role.MinAvailable, role.Total, role.Name)
		}
		return fmt.Sprintf("%s start together, each role by itself (%s)", strings.Join(steps, ", "), s.Dialect)
	}
	return fmt.Sprintf("%d of %d members start together (%s)", s.MinAvailable, s.Total, s.Dialect)
}
