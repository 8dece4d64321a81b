package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/gangctl/gangctl/sandbox/members"
)

// table holds what one act looked like under each scheduler.
type table struct {
	columns []column
}

type column struct {
	title   string
	moments []members.List
}

func (t *table) add(title string, moments []members.List) {
	t.columns = append(t.columns, column{title: title, moments: moments})
}

// print writes the act's moments one below the other, the schedulers side by
// side.
func (t *table) print(w io.Writer, act Act) error {
	fmt.Fprintf(w, "\n%s\n", act.Title)
	for moment, caption := range act.Moments {
		fmt.Fprintf(w, "\n%s\n", caption)
		out := tablewriter.NewTable(w,
			tablewriter.WithHeaderAutoFormat(tw.Off),
			tablewriter.WithHeaderAlignment(tw.AlignLeft),
			tablewriter.WithRowAlignment(tw.AlignLeft),
			tablewriter.WithFooterAutoFormat(tw.Off),
			tablewriter.WithFooterAlignmentConfig(tw.CellAlignment{Global: tw.AlignLeft}))
		header, idle := []string{"pod"}, []string{"GPUs held for nothing"}
		for _, c := range t.columns {
			header = append(header, c.title)
			idle = append(idle, fmt.Sprint(Idle(c.moments[moment])))
		}
		out.Header(header)
		for i, member := range t.columns[0].moments[moment] {
			row := []string{member.Pod}
			for _, c := range t.columns {
				row = append(row, strings.ToLower(string(c.moments[moment][i].State)))
			}
			if err := out.Append(row); err != nil {
				return err
			}
		}
		out.Footer(idle)
		if err := out.Render(); err != nil {
			return err
		}
	}
	return nil
}

// Idle is how many GPUs are held by members of jobs that are not whole: they
// wait for the others, and compute nothing.
func Idle(s members.List) (gpus int64) {
	done := map[string]bool{}
	for _, m := range s {
		if done[m.Job] {
			continue
		}
		done[m.Job] = true
		if job := s.Job(m.Job); job.Partial() {
			gpus += job.Held()
		}
	}
	return gpus
}

// printCost prints what the idle GPUs of the first moment of each act cost.
func printCost(w io.Writer, gpuHourPrice float64, tables []table) {
	fmt.Fprintf(w, "\nAn idle GPU-minute costs $%.3f at $%.2f a GPU-hour (--gpu-hour-price).\nWhile GPUs were short, every minute of the two examples cost:\n", gpuHourPrice/60, gpuHourPrice)
	for c := range tables[0].columns {
		var idle int64
		for _, t := range tables {
			idle += Idle(t.columns[c].moments[0])
		}
		fmt.Fprintf(w, "  %-18s %d idle GPU-minutes, $%.2f\n", tables[0].columns[c].title, idle, float64(idle)*gpuHourPrice/60)
	}
}
