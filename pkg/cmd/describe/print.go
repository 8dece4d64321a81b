package describe

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/gangctl/gangctl/pkg/cmd/events"
	"github.com/gangctl/gangctl/pkg/cmd/get"
	"github.com/gangctl/gangctl/pkg/printer"
	"github.com/gangctl/gangctl/pkg/render"
	"github.com/gangctl/gangctl/pkg/workload/tfjob"
)

func (o *Options) print(job *kubeflowv1.TFJob, s tfjob.Summary, happened []corev1.Event) error {
	if err := get.Print(o.IO, job, s); err != nil {
		return err
	}
	o.title("Spec")
	if err := o.table(specColumns, specRows(job)); err != nil {
		return err
	}
	o.title("Timeline")
	if err := o.table(stepColumns, stepRows(timeline(job, s))); err != nil {
		return err
	}
	o.title("Events")
	if len(happened) == 0 {
		fmt.Fprintln(o.IO.Out, "none: the API server keeps them for a time only")
	} else if err := events.Print(o.IO, happened); err != nil {
		return err
	}
	if command := job.Annotations[render.CommandAnnotation]; command != "" {
		o.title("Submitted with")
		fmt.Fprintln(o.IO.Out, command)
	}
	return nil
}

func (o *Options) title(text string) { fmt.Fprintf(o.IO.Out, "\n%s:\n", text) }

func (o *Options) table(columns []printer.Column, rows [][]string) error {
	return printer.PrintTable(o.IO.Out, printer.Flags{}, o.IO.Width(), columns, rows)
}

var (
	specColumns = []printer.Column{{Name: "Role"}, {Name: "Replicas"}, {Name: "Restart"}, {Name: "Requests"}, {Name: "Image"}, {Name: "Command"}}
	stepColumns = []printer.Column{{Name: "Step"}, {Name: "At"}, {Name: "After"}}
)

func specRows(job *kubeflowv1.TFJob) [][]string {
	var rows [][]string
	for role, r := range job.Spec.TFReplicaSpecs {
		replicas := int32(1) // what the operator takes for none
		if r.Replicas != nil {
			replicas = *r.Replicas
		}
		image, command, requests := "-", "-", "-"
		for _, c := range r.Template.Spec.Containers {
			if c.Name == kubeflowv1.TFJobDefaultContainerName {
				image = cmp.Or(c.Image, "-")
				command = cmp.Or(strings.Join(append(slices.Clone(c.Command), c.Args...), " "), "-")
				requests = resources(c.Resources)
			}
		}
		rows = append(rows, []string{strings.ToLower(string(role)), strconv.Itoa(int(replicas)), cmp.Or(string(r.RestartPolicy), "-"), requests, image, command})
	}
	slices.SortFunc(rows, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	return rows
}

// resources are what a container asks for; a limit without a request is one.
func resources(r corev1.ResourceRequirements) string {
	all := corev1.ResourceList{}
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for name, q := range list {
			all[name] = q
		}
	}
	var words []string
	for name, q := range all {
		words = append(words, fmt.Sprintf("%s=%s", name, q.String()))
	}
	slices.Sort(words)
	return cmp.Or(strings.Join(words, ","), "-")
}

// stepRows have, for each step that is known, how long after the one before it that is known it was.
func stepRows(steps []step) [][]string {
	var rows [][]string
	var before time.Time
	for _, s := range steps {
		at, after := "-", "-"
		if !s.at.IsZero() {
			at = s.at.UTC().Format(time.RFC3339)
			if !before.IsZero() {
				after = duration.HumanDuration(max(0, s.at.Sub(before)))
			}
			before = s.at
		}
		rows = append(rows, []string{s.name, at, after})
	}
	return rows
}
