package list

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gangctl/gangctl/pkg/printer"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

// columns of the table, without NAMESPACE, which comes first with -A, as kubectl has it.
var columns = []printer.Column{
	{Name: "Name"}, {Name: "Kind"}, {Name: "State"}, {Name: "Ready"}, {Name: "GPUs"}, {Name: "Age"},
	{Name: "Gang", Wide: true}, {Name: "Scheduler", Wide: true}, {Name: "Reason"},
}

func (o *Options) printTable(jobs *unstructured.UnstructuredList, pods []corev1.Pod) error {
	owned := tfjob.ByOwner(pods)
	shown := columns
	if o.AllNamespaces {
		shown = append([]printer.Column{{Name: "Namespace"}}, columns...)
	}
	now := o.IO.Clock.Now()
	var rows [][]string
	for i := range jobs.Items {
		job, err := tfjob.Decode(&jobs.Items[i])
		if err != nil {
			return err
		}
		s := tfjob.Summarize(job, owned[job.UID])
		cells := []string{job.Name, tfjob.Kind, string(s.State), fmt.Sprintf("%d/%d", s.Ready, s.Total), strconv.FormatInt(s.GPUs, 10),
			age(job.CreationTimestamp.Time, now), gang(s), s.Scheduler, s.Reason}
		if o.AllNamespaces {
			cells = append([]string{job.Namespace}, cells...)
		}
		rows = append(rows, cells)
	}
	return printer.PrintTable(o.IO.Out, o.Output, o.IO.Width(), shown, rows)
}

// gang reads like `3/4`: so many of so many members must start together.
func gang(s tfjob.Summary) string {
	if s.Dialect == "" {
		return "-"
	}
	return fmt.Sprintf("%d/%d", s.MinAvailable, s.Total)
}

func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(since))
}

// printObjects prints the jobs as stored. Names come one a line, and nothing for no jobs; the other formats get the list.
func (o *Options) printObjects(jobs *unstructured.UnstructuredList) error {
	p, err := o.Output.Printer()
	if err != nil {
		return err
	}
	if o.Output.Output != printer.Name {
		return p.PrintObj(jobs, o.IO.Out)
	}
	for i := range jobs.Items {
		if err := p.PrintObj(&jobs.Items[i], o.IO.Out); err != nil {
			return err
		}
	}
	return nil
}
