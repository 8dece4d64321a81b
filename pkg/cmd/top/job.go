package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// jobFrame shows jobs, those that hold the most first.
func jobFrame(r usage.Jobs, l layout) []string {
	kinds := heldKinds(r)
	columns := []printer.Column{{Name: "JOB"}, {Name: "STATE"}, {Name: "READY", Spare: 2}, {Name: "GPUS", Spare: 4}, {Name: "HELD"}, {Name: "IDLE-HELD", Spare: 1}, {Name: "WAIT", Spare: 3}}
	if l.wide {
		columns = append(columns, printer.Column{Name: "KIND", Spare: 8}, printer.Column{Name: "QUEUE", Spare: 5})
	}
	measured := slices.ContainsFunc(r.Jobs, func(j usage.JobUsage) bool { return j.Measured != nil })
	if l.wide || measured {
		columns = append(columns, printer.Column{Name: "CPU", Spare: 7}, printer.Column{Name: "MEM", Spare: 6})
	}
	if measured {
		columns = append(columns, printer.Column{Name: "CPU-NOW", Spare: 9}, printer.Column{Name: "MEM-NOW", Spare: 10})
	}
	progresses := slices.ContainsFunc(r.Jobs, func(j usage.JobUsage) bool { return j.Progress != nil })
	if progresses {
		columns = append(columns, printer.Column{Name: "PROGRESS", Spare: 9})
	}
	columns = append(columns, printer.Column{Name: "WHY"})
	if l.all {
		columns = append([]printer.Column{{Name: "NAMESPACE"}}, columns...)
	}
	var rows [][]string
	for _, j := range byHeld(r.Jobs) {
		row := []string{j.Name, string(j.State), fmt.Sprintf("%d/%d", j.Ready, j.Total), strconv.FormatInt(j.Requests.AllDevices(), 10), held(j.Held, kinds), idle(j.IdleMinutes), wait(j)}
		if l.wide {
			row = append(row, j.Kind, cmp.Or(j.Queue, none))
		}
		if l.wide || measured {
			row = append(row, cores(j.Held.CPU), gibi(j.Held.Memory)+"Gi")
		}
		if measured {
			row = append(row, now(j.Measured, j.Held.Pods)...)
		}
		if progresses {
			row = append(row, cmp.Or(phrase.Progress(j.Progress, r.At), none))
		}
		row = append(row, why(j))
		if l.all {
			row = append([]string{j.Namespace}, row...)
		}
		rows = append(rows, row)
	}
	lines := printer.Grid(columns, rows, l.width, l.headers)
	if !l.headers {
		return lines
	}
	return append(append(lines, ""), fold(jobFooter(r, kinds, l.all), l.width)...)
}

// byHeld sorts jobs by what they hold, then by how long they wait.
func byHeld(jobs []usage.JobUsage) []usage.JobUsage {
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b usage.JobUsage) int {
		return cmp.Or(cmp.Compare(b.Held.AllDevices(), a.Held.AllDevices()), cmp.Compare(b.WaitSeconds, a.WaitSeconds), cmp.Compare(a.String(), b.String()))
	})
	return jobs
}

// heldKinds are the kinds of device that any pod holds or requests.
func heldKinds(r usage.Jobs) []corev1.ResourceName {
	var kinds []corev1.ResourceName
	add := func(h usage.Held) {
		for kind := range h.Devices {
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	for _, j := range r.Jobs {
		add(j.Held)
		add(j.Requests)
	}
	for _, o := range r.Others {
		add(o.Held)
	}
	slices.Sort(kinds)
	return kinds
}

func held(h usage.Held, kinds []corev1.ResourceName) string {
	if h.AllDevices() == 0 {
		return "0"
	}
	return labelled(kinds, len(kinds) > 1, func(kind corev1.ResourceName) string {
		if h.Devices[kind] == 0 {
			return ""
		}
		return strconv.FormatInt(h.Devices[kind], 10)
	})
}

func wait(j usage.JobUsage) string {
	if j.WaitSeconds <= 0 {
		return none
	}
	return age(j.WaitSeconds)
}

func why(j usage.JobUsage) string {
	if j.Code == "" || j.Why == "" {
		return j.Why + j.Code
	}
	return j.Code + ": " + strings.TrimPrefix(j.Why, j.Name+": ")
}

// devices are so many GPUs, by kind where there are several.
func devices(h usage.Held, kinds []corev1.ResourceName) string {
	if len(kinds) > 1 && h.AllDevices() > 0 {
		return held(h, kinds)
	}
	return phrase.Count(h.AllDevices(), "GPU")
}

// jobFooter sums up what jobs hold, and what holds the rest: of all namespaces, or in that of the jobs.
func jobFooter(r usage.Jobs, kinds []corev1.ResourceName, all bool) string {
	var inJobs, elsewhere usage.Held
	var minutes float64
	holding := 0
	for _, j := range r.Jobs {
		inJobs.Add(j.Held)
		minutes += j.IdleMinutes
		if j.Held.AllDevices() > 0 {
			holding++
		}
	}
	for _, o := range r.Others {
		elsewhere.Add(o.Held)
	}
	jobs, others := phrase.Count(len(r.Jobs), "job"), "others"
	if holding < len(r.Jobs) {
		jobs = fmt.Sprintf("%d of %s", holding, jobs)
	}
	if !all {
		others = "others in this namespace"
	}
	text := fmt.Sprintf("%s %s %s; %s hold %s", jobs, phrase.Verb(holding, "holds", "hold"), devices(inJobs, kinds), others, devices(elsewhere, kinds))
	if minutes > 0 {
		text += "; " + idle(minutes) + " held by gangs that are not whole"
	}
	return text
}
