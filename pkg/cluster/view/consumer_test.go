package view_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// What makes jobs, such as a workflow or a search, holds nothing itself: each of its jobs does, and ends by itself. The parts of a job belong to the whole.
func TestConsumersBelowAnOwner(t *testing.T) {
	for kind, want := range map[string][]string{
		"TFJob":    {"TFJob team/step-a", "TFJob team/step-b"},
		"TrainJob": {"TrainJob team/step-a", "TrainJob team/step-b"},
	} {
		c := clustertest.New().Nodes(2, 8)
		for _, name := range []string{"step-a", "step-b"} {
			c.Add(clustertest.Gang{Kind: kind, Name: name, Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Job: func(job map[string]any) {
				job["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "wf", "uid": "wf", "controller": true}}
			}})
		}
		var got []string
		for _, h := range view.New(c.Done()).Consumers() {
			if h.Job == nil || !h.Ends {
				t.Errorf("%s %s is not taken for a job that ends", h.Kind, h)
			}
			got = append(got, h.Kind+" "+h.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Two API groups have a kind of one name, as OpenKruise has a StatefulSet: what one of them makes is no part of the other.
func TestConsumersOfOneNameInTwoGroups(t *testing.T) {
	c := clustertest.New().Nodes(1, 8)
	for _, apiVersion := range []string{"apps/v1", "apps.kruise.io/v1beta1"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "of-" + apiVersion[:5], UID: types.UID(apiVersion + " pod"),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: apiVersion, Kind: "StatefulSet", Name: "cache", UID: types.UID(apiVersion), Controller: new(true)}}}}
		p.Spec.NodeName, p.Spec.Containers, p.Status.Phase = "n1", []corev1.Container{{Name: "c"}}, corev1.PodRunning
		c.Put(p)
	}
	w := view.New(c.Done())
	all := w.Consumers()
	if len(all) != 2 || all[0].Group != "apps" || all[1].Group != "apps.kruise.io" {
		t.Fatalf("got %v", all)
	}
	for i, h := range all {
		job, err := w.Find(view.Query{Namespace: "team", Kind: "pod", Name: h.Pods[0].Name})
		if err != nil {
			t.Fatal(err)
		}
		for j, other := range all {
			if g := w.Gang(job); other.Makes(g) != (i == j) {
				t.Errorf("%s makes the pods of %s: %t", other.GroupKind(), g.Maker.Ref(), i != j)
			}
			if w.Includes(other, h.Pods[0]) != (i == j) || h.Is(other) != (i == j) {
				t.Errorf("%s is taken for %s, or is not what it is", h.GroupKind(), other.GroupKind())
			}
		}
	}
}
