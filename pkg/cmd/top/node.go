package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// layout is how a frame looks. A frame is a function of it and of a report alone.
type layout struct {
	// width is that of the screen in columns, 0 for a pipe: nothing is cut.
	width   int
	wide    bool
	headers bool
	// all is set where the jobs of all namespaces are shown.
	all bool
	// letters are those of the consumers in the view with one cell for each device.
	letters letters
}

// namesFrom is the width from which on jobs are named and not only counted.
const namesFrom = 120

// nodeFrame shows nodes, and below them what the cluster has.
func nodeFrame(r usage.Nodes, l layout) []string {
	kinds := make([]corev1.ResourceName, 0, len(r.Totals))
	for _, t := range r.Totals {
		kinds = append(kinds, t.Kind)
	}
	columns := []printer.Column{{Name: "NODE"}, {Name: "STATE", Spare: 1}, {Name: "GPU"}, {Name: "FREE"}}
	if l.wide {
		columns = append(columns, printer.Column{Name: "CELLS"})
	}
	columns = append(columns, printer.Column{Name: "CPU", Spare: 2}, printer.Column{Name: "MEM", Spare: 3})
	measured := slices.ContainsFunc(r.Nodes, func(n usage.Node) bool { return n.Measured != nil })
	if measured {
		columns = append(columns, printer.Column{Name: "CPU-NOW", Spare: 6}, printer.Column{Name: "MEM-NOW", Spare: 7})
	}
	columns = append(columns, printer.Column{Name: "PODS", Spare: 5}, printer.Column{Name: "GANGS", Spare: 4}, printer.Column{Name: "NOTE"})
	rows := make([][]string, 0, len(r.Nodes))
	for _, n := range r.Nodes {
		row := []string{n.Name, strings.Join(n.States, ","), used(n, kinds), free(n, kinds)}
		if l.wide {
			row = append(row, l.letters.cells(n))
		}
		row = append(row, cores(n.CPU.Used)+"/"+cores(n.CPU.Total), gibi(n.Memory.Used)+"/"+gibi(n.Memory.Total)+"Gi")
		if measured {
			row = append(row, now(n.Measured, 0)...)
		}
		rows = append(rows, append(row, fmt.Sprintf("%d/%d", n.Pods.Used, n.Pods.Total), jobs(n, l.width), note(n)))
	}
	lines := printer.Grid(columns, rows, l.width, l.headers)
	if !l.headers {
		return lines
	}
	if l.wide {
		lines = append(append(lines, ""), l.letters.legend(r, l.width)...)
	}
	return append(append(lines, ""), nodeFooter(r, l)...)
}

// now are the cells of what is measured, of so many pods. Where not all of them are measured yet, it is at least so much.
func now(m *usage.Measured, pods int64) []string {
	if m == nil {
		return []string{none, none}
	}
	least := ""
	if m.Pods < pods {
		least = "≥"
	}
	return []string{least + cores(m.CPU), least + gibi(m.Memory) + "Gi"}
}

// used reads 6/8, with a ! where devices are unhealthy.
func used(n usage.Node, kinds []corev1.ResourceName) string {
	return labelled(kinds, len(kinds) > 1, func(kind corev1.ResourceName) string {
		for _, d := range n.Devices {
			if d.Kind == kind {
				sign := ""
				if d.Unhealthy > 0 {
					sign = "!"
				}
				return fmt.Sprintf("%d/%d%s", d.Used, d.Total, sign)
			}
		}
		return ""
	})
}

// free are the devices that a pod could get now, in the order of the kinds.
func free(n usage.Node, kinds []corev1.ResourceName) string {
	return strings.ReplaceAll(labelled(kinds, false, func(kind corev1.ResourceName) string {
		for _, d := range n.Devices {
			if d.Kind == kind {
				return strconv.FormatInt(d.Free, 10)
			}
		}
		return ""
	}), ", ", "+")
}

func jobs(n usage.Node, width int) string {
	switch {
	case len(n.Jobs) == 0:
		return none
	case width > 0 && width < namesFrom:
		return strconv.Itoa(len(n.Jobs))
	}
	return phrase.Names(n.Jobs)
}

// note reports what cannot be used and why, and what is about to change.
func note(n usage.Node) string {
	var parts []string
	for _, d := range n.Devices {
		if d.Unhealthy > 0 {
			parts = append(parts, fmt.Sprintf("%d unhealthy", d.Unhealthy))
		}
		for _, u := range d.Unusable {
			if u.Reason != usage.ReasonUnhealthy {
				parts = append(parts, fmt.Sprintf("%d idle: %s", u.Amount, u.Reason))
			}
		}
		if d.Used > d.Total {
			parts = append(parts, fmt.Sprintf("%d more used than there are", d.Used-d.Total))
		}
	}
	for _, t := range n.Taints {
		parts = append(parts, "taint "+t)
	}
	if n.Leaving > 0 {
		parts = append(parts, leaving(n))
	}
	return strings.Join(parts, "; ")
}

// leaving reads like: 2 pods terminating, still hold 4 GPUs.
func leaving(n usage.Node) string {
	var holds []string
	for _, d := range n.Devices {
		if d.Leaving > 0 {
			holds = append(holds, phrase.Count(d.Leaving, noun(d.Kind)))
		}
	}
	text := phrase.Count(n.Leaving, "pod") + " terminating"
	if len(holds) == 0 {
		return text
	}
	return text + ", still " + phrase.Verb(int(n.Leaving), "holds ", "hold ") + strings.Join(holds, ", ")
}

// nodeFooter sums up each kind of device.
func nodeFooter(r usage.Nodes, l layout) []string {
	var lines []string
	for _, t := range r.Totals {
		text := fmt.Sprintf("%s: %d total, %d used", t.Kind, t.Total, t.Used)
		if t.Leaving > 0 {
			text += fmt.Sprintf(" (%d by terminating pods)", t.Leaving)
		}
		text += fmt.Sprintf(", %d idle", t.Idle)
		if len(t.Unusable) > 0 {
			var why []string
			var n int64
			for _, u := range t.Unusable {
				why = append(why, fmt.Sprintf("%d %s", u.Amount, u.Reason))
				n += u.Amount
			}
			text += fmt.Sprintf(", %d of them unusable: %s", n, strings.Join(why, ", "))
		}
		lines = append(lines, fold(text, l.width)...)
		if len(t.Largest) > 0 {
			lines = append(lines, fold(largest(t), l.width)...)
		}
	}
	if len(lines) == 0 {
		lines = append(lines, "no accelerators")
	}
	return lines
}

// largest reads like: largest gang that starts now: 5×1 GPU, 2×2; none with 4 or more a member.
func largest(t usage.Total) string {
	var sizes []string
	for _, g := range t.Largest {
		if g.Members == 0 {
			break // what does not fit does not fit with more devices either
		}
		size := fmt.Sprintf("%d×%d", g.Members, g.Devices)
		if len(sizes) == 0 {
			size += " " + noun(t.Kind)
		}
		sizes = append(sizes, size)
	}
	text := "largest gang that starts now: " + strings.Join(sizes, ", ")
	switch more := t.Largest[len(sizes):]; {
	case len(sizes) == 0:
		text = fmt.Sprintf("no gang with %ss starts now", noun(t.Kind))
	case len(more) == 1:
		text += fmt.Sprintf("; none with %d a member", more[0].Devices)
	case len(more) > 1:
		text += fmt.Sprintf("; none with %d or more a member", more[0].Devices)
	}
	if t.Usual.CPU > 0 || t.Usual.Memory > 0 {
		text += fmt.Sprintf(" (with %s cpu, %sGi a %s, the median)", cores(t.Usual.CPU), gibi(t.Usual.Memory), noun(t.Kind))
	}
	return text
}
