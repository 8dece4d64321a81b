package view_test

import (
	"slices"
	"testing"

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
