package list

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// columns of the table, without NAMESPACE, which comes first with -A, as kubectl has it.
var columns = []printer.Column{
	{Name: "Name"}, {Name: "Kind", Spare: 6}, {Name: "State"}, {Name: "Ready", Spare: 1}, {Name: "GPUs", Spare: 4}, {Name: "Age", Spare: 5},
	{Name: "Gang", Wide: true, Spare: 2}, {Name: "Scheduler", Wide: true, Spare: 3}, {Name: "Reason"},
}

// row is one job.
type row struct {
	job *gang.Job
	sum summary.Summary
}

// rows are the jobs, which come sorted by name, in the order of --sort-by.
func (o *Options) rows(all []*gang.Job, pods map[types.UID][]*corev1.Pod) []row {
	now := o.IO.Clock.Now()
	rows := make([]row, len(all))
	for i, job := range all {
		rows[i] = row{job, summary.Of(job, pods[job.Meta.UID], now)}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		switch o.SortBy {
		case byKind:
			return strings.Compare(a.job.Kind.Kind, b.job.Kind.Kind)
		case byState:
			return strings.Compare(string(a.sum.State), string(b.sum.State))
		case byGPUs:
			return cmp.Compare(b.sum.GPUs, a.sum.GPUs)
		case byAge:
			return a.job.Meta.CreationTimestamp.Compare(b.job.Meta.CreationTimestamp.Time)
		default:
			return 0
		}
	})
	return rows
}

func (o *Options) printTable(all []row) error {
	shown := columns
	if o.AllNamespaces {
		shown = append([]printer.Column{{Name: "Namespace"}}, columns...)
	}
	now := o.IO.Clock.Now()
	var rows [][]string
	for _, r := range all {
		job, s := r.job, r.sum
		cells := []string{job.Meta.Name, job.Kind.Kind, string(s.State), fmt.Sprintf("%d/%d", s.Ready, s.Total), strconv.FormatInt(s.GPUs, 10),
			phrase.Since(job.Meta.CreationTimestamp.Time, now), gangName(s), s.Scheduler, s.Brief()}
		if o.AllNamespaces {
			cells = append([]string{job.Meta.Namespace}, cells...)
		}
		rows = append(rows, cells)
	}
	return printer.PrintTable(o.IO.Out, o.Output, o.IO.Width(), shown, rows)
}

// gangName reads like `3/4`: so many of so many members must start together. Of a job of several gangs it is like `2x3/3`, and like `1/1+3/3`
// where they are unlike.
func gangName(s summary.Summary) string {
	switch {
	case s.Dialect == "":
		return "-"
	case len(s.Roles) > 0:
		sizes := make([]string, len(s.Roles))
		for i, role := range s.Roles {
			sizes[i] = fmt.Sprintf("%d/%d", role.MinAvailable, role.Total)
		}
		return strings.Join(sizes, "+")
	case s.Replicas > 0:
		return fmt.Sprintf("%dx%d/%d", s.Replicas, s.MinAvailable, s.Total/s.Replicas)
	}
	return fmt.Sprintf("%d/%d", s.MinAvailable, s.Total)
}

// printObjects prints the jobs as stored. Names come one a line, and nothing for no jobs; the other formats get a list.
func (o *Options) printObjects(all []row) error {
	p, err := o.Output.Printer()
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}}, Items: []unstructured.Unstructured{}}
	for _, r := range all {
		list.Items = append(list.Items, *r.job.Object)
	}
	if o.Output.Output != printer.Name {
		return p.PrintObj(list, o.IO.Out)
	}
	for i := range list.Items {
		if err := p.PrintObj(&list.Items[i], o.IO.Out); err != nil {
			return err
		}
	}
	return nil
}
