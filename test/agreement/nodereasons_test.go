package agreement

import (
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func TestHeard(t *testing.T) {
	tests := []struct{ message, want string }{
		{"Unschedulable: 0/7 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu, 1 Too many pods, 3 node(s) had untolerated taint(s). preemption: not eligible.",
			"1 resource cpu, 2 resource nvidia.com/gpu, 1 resource pods, 3 taint"},
		{"0/9 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 2 node(s) didn't satisfy existing pods anti-affinity rules, 6 node(s) didn't match Pod's node affinity/selector.",
			"3 antiAffinity, 6 selector"},
		{"0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label), 2 node(s) didn't match pod topology spread constraints.", "3 spread"},
		{"0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) didn't have free ports for the requested pod ports.", "1 port, 1 volume"},
		{"0/6 nodes are available: 3 of the 7 members that its gang needs fit: it needs 7 members with 2 GPUs each, 14 in all.", ""},
		{"pod group is unschedulable, minCount (3) cannot be satisfied: 2 scheduled, 0 remaining", ""},
	}
	for _, tt := range tests {
		got, ok := parseRejections(tt.message)
		if got.String() != tt.want || ok != (tt.want != "") {
			t.Errorf("%s\nheard %q, want %q", tt.message, got, tt.want)
		}
	}
}

func row(node string, constraints ...string) answer.NodeRow {
	r := answer.NodeRow{Node: node, Role: "Member"}
	for _, c := range constraints {
		r.Violations = append(r.Violations, answer.Violation{Constraint: c})
	}
	return r
}

func TestNodeByNode(t *testing.T) {
	rows := []answer.NodeRow{
		row("n1", "nodeSelector", "cordon"), // the cordon is looked at first
		row("n2", "podAffinity", "resource:cpu", "pods"),
		row("n3", "notReady"),
	}
	right := "0/3 nodes are available: 1 Insufficient cpu, 1 Too many pods, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
	tests := []struct {
		name    string
		outcome Outcome
		want    string
	}{
		{"the same", outcomeWith(right), ""},
		{"another", outcomeWith("0/3 nodes are available: 3 Insufficient cpu."), "the scheduler counts 3 resource cpu"},
		{"of a gang, with members assumed", Outcome{Members: 2, Messages: []string{"0/3 nodes are available: 3 Insufficient cpu.", "1 scheduled, 0 remaining"}}, ""},
		{"of a gang, with none assumed", Outcome{Members: 2, Messages: []string{"0/3 nodes are available: 3 Insufficient cpu.", "0 scheduled, 1 remaining"}}, "gangctl has 1 cordon"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := &answer.Answer{Nodes: &answer.Nodes{Rows: rows}}
			if got := NodeByNode(a, tt.outcome); !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
