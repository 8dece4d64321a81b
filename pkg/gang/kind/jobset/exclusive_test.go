package jobset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Jobs with exclusive topology have a domain each, by the annotations of the JobSet or of the Job.
func TestExclusive(t *testing.T) {
	const on, before = "alpha.jobset.sigs.k8s.io/exclusive-topology: ", "alpha.jobset.sigs.k8s.io/node-selector: \"true\""
	set := func(annotations string, replicated ...string) string {
		return "metadata: {name: llama, namespace: team, annotations: {" + annotations + "}}\nspec: {replicatedJobs: [" + strings.Join(replicated, ", ") + "]}"
	}
	one := func(name, annotations, job, pod string) string {
		return fmt.Sprintf("{name: %s, template: {metadata: {annotations: {%s}}, spec: {%sparallelism: 2, template: {spec: {%scontainers: [{name: main}]}}}}}", name, annotations, job, pod)
	}
	var many []string
	for i := range gang.MaxPartRules + 1 {
		many = append(many, one(fmt.Sprint("a", i), on+fmt.Sprint("rack", i), "", ""))
	}
	for name, tt := range map[string]struct {
		body, want string
		unmodelled bool
	}{
		"of the JobSet":            {body: set(on+"rack", one("a", "", "", ""), one("b", "", "", "")), want: "rack"},
		"of one Job":               {body: set("", one("a", on+"rack", "", ""), one("b", "", "", "")), want: "rack of jobset.sigs.k8s.io/replicatedjob-name in (a)"},
		"of both":                  {body: set(on+"block", one("a", on+"rack", "", ""), one("b", "", "", "")), want: "rack of jobset.sigs.k8s.io/replicatedjob-name in (a); block of jobset.sigs.k8s.io/replicatedjob-name in (b)"},
		"on labelled nodes":        {body: set(on+"rack, "+before, one("a", "", "", ""))},
		"one of two, on labelled":  {body: set(on+"rack", one("a", on+"rack, "+before, "", ""), one("b", "", "", "")), want: "rack of jobset.sigs.k8s.io/replicatedjob-name in (b)"},
		"none":                     {body: set("", one("a", "", "", ""))},
		"no label of a node":       {body: set(on+"no label", one("a", "", "", "")), unmodelled: true},
		"more than are read":       {body: set("", many...), unmodelled: true},
		"pods without an index":    {body: set(on+"rack", one("a", "", "completionMode: NonIndexed, ", "")), unmodelled: true},
		"Jobs that outrank others": {body: set(on+"rack", one("a", "", "", "priorityClassName: high, "), one("b", "", "", "")), unmodelled: true},
	} {
		j := job(t, tt.body)
		var got []string
		for _, rule := range j.Exclusive {
			text := rule.Rule.Required
			if rule.Rule.Selector != "" {
				text += " of " + rule.Rule.Selector
			}
			got = append(got, text)
			if rule.Label != "jobset.sigs.k8s.io/job-key" || rule.Rule.Exclusive != NameLabel || !rule.Namespaces {
				t.Errorf("%s: got %+v", name, rule)
			}
			for _, index := range []int{0, 1} { // both pods of a Job are in one part, by labels that pods to come have
				have := labels(j, gang.RoleIndex{Role: "b", Index: index})
				if !rule.Rule.Decides(have) || have["job-name"] != "llama-b-0" {
					t.Errorf("%s: labels %v", name, have)
				}
			}
		}
		if strings.Join(got, "; ") != tt.want || (len(j.Unmodelled) > 0) != tt.unmodelled {
			t.Errorf("%s: got %q, not modelled: %q", name, got, j.Unmodelled)
		}
	}
}
