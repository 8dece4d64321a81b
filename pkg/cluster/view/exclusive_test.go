package view_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// What the webhook of JobSet writes into the first pod of a Job is a rule for parts, and members have it in no other form. Pods of other JobSets that are in the way are named by
// their keys, unless they are of another priority, or the Job has its domain already.
func TestExclusiveTopologyOfMembers(t *testing.T) {
	const key, priority = "jobset.sigs.k8s.io/job-key", "jobset.sigs.k8s.io/priority"
	term := func(also ...metav1.LabelSelectorRequirement) []corev1.PodAffinityTerm {
		return []corev1.PodAffinityTerm{{TopologyKey: "rack", NamespaceSelector: &metav1.LabelSelector{}, LabelSelector: &metav1.LabelSelector{MatchExpressions: also}}}
	}
	webhook := func(i int, p *corev1.Pod) {
		p.Labels[key], p.Labels[priority] = "own", "0"
		if i == 0 {
			p.Spec.Affinity = &corev1.Affinity{
				PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{"own"}})},
				PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists},
					metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"own"}})},
			}
		}
	}
	// wide keeps all others out of its block
	wide := func(p *corev1.Pod) {
		a := term(metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists}, metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"other"}})
		a[0].TopologyKey = "block"
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: a}}
	}
	for name, tc := range map[string]struct {
		other func(*corev1.Pod) // nil without a pod of another JobSet
		bound []string
		want  string
	}{
		"alone":                       {want: "[] alike [true]"},
		"another":                     {other: func(*corev1.Pod) {}, want: "[rack [other]] alike [true]"},
		"of another priority":         {other: func(p *corev1.Pod) { p.Labels[priority] = "7" }, want: "[] alike [true]"},
		"that keeps a block":          {other: wide, want: "[block [other] rack [other]] alike [true]"},
		"it follows its first member": {other: func(*corev1.Pod) {}, bound: []string{"n1"}, want: "[] alike [true]"},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New().Nodes(3, 8)
			g := clustertest.Gang{Name: "gang", Kind: "JobSet", NoGroup: true, Workers: 2, GPUs: 8, Nodes: tc.bound, Pod: webhook}
			g.Job = func(job map[string]any) {
				job["metadata"].(map[string]any)["annotations"] = map[string]any{"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
			}
			c.Add(g)
			if tc.other != nil {
				c.Add(clustertest.Gang{Namespace: "research", Name: "busy", Kind: "JobSet", NoGroup: true, Workers: 1, GPUs: 8, Nodes: []string{"n2"}, Pod: func(_ int, p *corev1.Pod) {
					p.Labels[key] = "other"
					tc.other(p)
				}})
			}
			w := view.New(c.Done())
			job, err := w.Find(view.Query{Namespace: "team", Name: "gang"})
			if err != nil {
				t.Fatal(err)
			}
			request := w.PlacementRequest(w.Gang(job))
			var terms []any
			alike := []bool{len(request.Roles) == 1}
			for _, r := range request.Roles {
				a := r.Pod.Spec.Affinity
				if _, has := r.Pod.Labels[key]; has || a != nil && a.PodAffinity != nil {
					t.Errorf("the rule is in the pod as well: %+v", a)
				}
				if a != nil {
					for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
						terms = append(terms, term.TopologyKey, term.LabelSelector.MatchExpressions[0].Values)
					}
				}
			}
			if got := fmt.Sprint(terms, " alike ", alike); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if parts := request.Topology.Parts; len(parts) != 1 || parts[0].Required != "rack" || parts[0].Exclusive == "" || !slices.Equal(parts[0].By, []string{"job-name"}) {
				t.Errorf("got the rules %+v", parts)
			}
		})
	}
}
