package leaderworkerset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Replicas, and groups within them, with exclusive topology have a domain each.
func TestExclusive(t *testing.T) {
	annotated := func(annotations, spec string) string {
		return "metadata: {name: llama, namespace: team, annotations: {" + annotations + "}}\n" + spec
	}
	for name, tt := range map[string]struct{ body, want, subgroups string }{
		"none":                  {body: of("", "size: 4, "), subgroups: "- - - -"},
		"replicas":              {body: annotated(ExclusiveAnnotation+": rack", of("replicas: 2, ", "size: 4, ")), want: "rack by group-key", subgroups: "- - - -"},
		"groups":                {body: annotated(subgroupExclusiveAnnotation+": rack", of("", "size: 4, subGroupPolicy: {subGroupSize: 2}, ")), want: "rack by subgroup-key", subgroups: "0 0 1 1"},
		"both":                  {body: annotated(ExclusiveAnnotation+": block, "+subgroupExclusiveAnnotation+": rack", of("", "size: 4, subGroupPolicy: {subGroupSize: 2}, ")), want: "block by group-key; rack by subgroup-key", subgroups: "0 0 1 1"},
		"a leader in the first": {body: of("", "size: 5, subGroupPolicy: {subGroupSize: 2}, "), subgroups: "0 0 0 1 1"},
		"a leader in none":      {body: of("", "size: 5, subGroupPolicy: {subGroupPolicyType: LeaderExcluded, subGroupSize: 2}, "), subgroups: "- 0 0 1 1"},
		"groups of nothing":     {body: annotated(subgroupExclusiveAnnotation+": rack", of("", "size: 4, subGroupPolicy: {subGroupSize: 0}, ")), subgroups: "- - - -"},
		"no label of a node":    {body: annotated("\""+ExclusiveAnnotation+"\": no label", of("", "size: 4, ")), subgroups: "- - - -"},
	} {
		j := job(t, tt.body)
		var rules, groups []string
		for _, rule := range j.Exclusive {
			rules = append(rules, rule.Rule.Required+" by "+strings.TrimPrefix(rule.Label, labelPrefix))
		}
		for _, role := range j.Roles {
			for i := range role.PartSize {
				number, in := labels(j, gang.RoleIndex{Role: role.Name, Index: int(i)})[subgroupIndexLabel]
				if !in {
					number = "-"
				}
				groups = append(groups, number)
			}
		}
		if (len(j.Unmodelled) > 0) != (name == "no label of a node") || strings.Join(rules, "; ") != tt.want || strings.Join(groups, " ") != tt.subgroups {
			t.Errorf("%s: got %q, groups %s", name, rules, fmt.Sprint(groups))
		}
	}
}
