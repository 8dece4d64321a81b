package top

import (
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

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
