package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// outside is how the jobs without a queue are shown.
const outside = "(none)"

// queueFrame shows queues.
func queueFrame(r usage.Queues, l layout) []string {
	columns := []printer.Column{{Name: "QUEUE"}, {Name: "STATE", Spare: 3}, {Name: "GPUS"}, {Name: "CPU", Spare: 4}, {Name: "MEM", Spare: 5}, {Name: "RUNNING", Spare: 1}, {Name: "WAITING"}}
	if l.wide {
		columns = append(columns, printer.Column{Name: "KIND", Spare: 7}, printer.Column{Name: "PARENT", Spare: 6})
	}
	columns = append(columns, printer.Column{Name: "WAITING-GPUS"})
	kinds := queueKinds(r)
	var rows [][]string
	for _, q := range r.Queues {
		name := cmp.Or(q.Name, outside)
		row := []string{name, cmp.Or(q.State, none), quotas(q, kinds), quota(q, corev1.ResourceCPU, q.Held.CPU, cores), quota(q, corev1.ResourceMemory, q.Held.Memory, func(n int64) string { return gibi(n) + "Gi" }),
			strconv.Itoa(q.Running), strconv.Itoa(q.Waiting)}
		if l.wide {
			row = append(row, cmp.Or(q.Kind, none), cmp.Or(q.Parent, none))
		}
		rows = append(rows, append(row, strconv.FormatInt(q.Requested, 10)))
	}
	return printer.Grid(columns, rows, l.width, l.headers)
}

func queueKinds(r usage.Queues) []corev1.ResourceName {
	var kinds []corev1.ResourceName
	add := func(kind corev1.ResourceName) {
		if usage.IsDevice(kind) && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, q := range r.Queues {
		for kind := range q.Held.Devices {
			add(kind)
		}
		for _, quota := range q.Quotas {
			add(quota.Resource)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// quotas reads like 16/32, or 16 where there is no limit.
func quotas(q usage.Queue, kinds []corev1.ResourceName) string {
	if len(kinds) == 0 {
		return "0"
	}
	text := labelled(kinds, len(kinds) > 1, func(kind corev1.ResourceName) string {
		s := quota(q, kind, q.Held.Devices[kind], func(n int64) string { return strconv.FormatInt(n, 10) })
		if s == "0" {
			return ""
		}
		return s
	})
	if text == none {
		return "0"
	}
	return text
}

func quota(q usage.Queue, name corev1.ResourceName, held int64, text func(int64) string) string {
	for _, r := range q.Quotas {
		if r.Resource == name {
			return fmt.Sprintf("%s/%s", text(r.Used), text(r.Limit))
		}
	}
	return text(held)
}
