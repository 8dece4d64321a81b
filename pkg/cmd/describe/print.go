package describe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cmd/events"
	"github.com/gangctl/gangctl/pkg/cmd/get"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

func (o *Options) print(job *gang.Job, s summary.Summary, happened []corev1.Event, read bool) error {
	if err := get.Print(o.IO, printer.Flags{}, job, s); err != nil {
		return err
	}
	if progress := phrase.Progress(job.Progress, o.IO.Clock.Now()); progress != "" {
		fmt.Fprintf(o.IO.Out, "\nProgress: %s\n", progress)
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
	switch {
	case !read:
		fmt.Fprintln(o.IO.Out, "not known: you may not list events")
	case len(happened) == 0:
		fmt.Fprintln(o.IO.Out, "none: the API server keeps them for a time only")
	default:
		if err := events.Print(o.IO, happened); err != nil {
			return err
		}
	}
	if kept := provenance.CommandLine(job.Object); kept != "" {
		o.title("Submitted with")
		fmt.Fprintln(o.IO.Out, cmp.Or(redact.CommandLine(kept), "not shown: annotation "+provenance.CommandAnnotation+" holds no command line of gangctl submit"))
	}
	if changed, known := provenance.Changed(job.Object); known && changed {
		fmt.Fprintln(o.IO.Out, "\nIts spec was changed since: what gangctl resubmit repeats is the command line")
	}
	return nil
}

func (o *Options) title(text string) { fmt.Fprintf(o.IO.Out, "\n%s:\n", text) }

func (o *Options) table(columns []printer.Column, rows [][]string) error {
	return printer.PrintTable(o.IO.Out, printer.Flags{}, o.IO.Width(), columns, rows)
}

var (
	specColumns = []printer.Column{{Name: "Role"}, {Name: "Replicas"}, {Name: "Restart", Spare: 2}, {Name: "Requests"}, {Name: "Image", Spare: 1}, {Name: "Command"}}
	stepColumns = []printer.Column{{Name: "Step"}, {Name: "At"}, {Name: "After"}}
)

func specRows(job *gang.Job) [][]string {
	var rows [][]string
	for _, r := range roles(job) {
		var requests []string
		for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
			requests = append(requests, name+"="+r.Requests[name])
		}
		rows = append(rows, []string{r.Name, strconv.Itoa(int(r.Replicas)), cmp.Or(r.Restart, "-"), cmp.Or(strings.Join(requests, ","), "-"), cmp.Or(r.Image, "-"),
			cmp.Or(shell.Join(r.Command...), "-")})
	}
	return rows
}

// stepRows have, for each step that is known, how long after the one before it that is known it was.
func stepRows(steps []step) [][]string {
	var rows [][]string
	var before time.Time
	for _, s := range steps {
		at, after := "-", "-"
		if !s.at.IsZero() {
			at = s.at.UTC().Format(time.RFC3339)
			after, before = phrase.Since(before, s.at), s.at
		}
		rows = append(rows, []string{s.name, at, after})
	}
	return rows
}
