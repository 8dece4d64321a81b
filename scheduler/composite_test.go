package scheduler

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// gates are those that composite PodGroups need, as kube-scheduler has them.
func gates(t *testing.T, set map[string]bool) featuregate.MutableVersionedFeatureGate {
	t.Helper()
	gate := featuregate.NewFeatureGate()
	err := gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		features.TopologyAwareWorkloadScheduling: {PreRelease: featuregate.Alpha}, features.CompositePodGroup: {PreRelease: featuregate.Alpha},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.AddDependencies(map[featuregate.Feature][]featuregate.Feature{features.CompositePodGroup: {features.TopologyAwareWorkloadScheduling}}); err != nil {
		t.Fatal(err)
	}
	if err := gate.SetFromMap(set); err != nil {
		t.Fatal(err)
	}
	return gate
}

func TestEnableComposite(t *testing.T) {
	const composite, topology = string(features.CompositePodGroup), string(features.TopologyAwareWorkloadScheduling)
	for name, tt := range map[string]struct {
		set     map[string]bool
		served  bool
		want    bool
		refused string
	}{
		"served":                         {served: true, want: true},
		"not served":                     {},
		"served, and switched off":       {set: map[string]bool{composite: false}, served: true},
		"served, without topology":       {set: map[string]bool{topology: false}, served: true},
		"served, and switched on":        {set: map[string]bool{topology: true, composite: true}, served: true, want: true},
		"switched on without being so":   {set: map[string]bool{topology: true, composite: true}, want: true, refused: "the API server does not serve compositepodgroups of scheduling.k8s.io/v1alpha3"},
		"not served, and switched off":   {set: map[string]bool{composite: false}},
		"not served, topology is on":     {set: map[string]bool{topology: true}},
		"not served, all of alpha is on": {set: map[string]bool{"AllAlpha": true}},
		"served, all of alpha is on":     {set: map[string]bool{"AllAlpha": true}, served: true, want: true},
		"served, topology is on before":  {set: map[string]bool{topology: true}, served: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			gate := gates(t, tt.set)
			err := enableComposite(t.Context(), gate, func(_ context.Context, r schema.GroupVersionResource) (bool, error) { return tt.served, nil })
			if got := failure.From(err); (err != nil) != (tt.refused != "") || err != nil && (!strings.Contains(got.Error(), tt.refused) || got.Code != failure.CodeUsage || got.Hint == "") {
				t.Errorf("got %v, want %q", err, tt.refused)
			}
			if got := gate.Enabled(features.CompositePodGroup); got != tt.want || got && !gate.Enabled(features.TopologyAwareWorkloadScheduling) {
				t.Errorf("the gate is %v, that of topology %v", got, gate.Enabled(features.TopologyAwareWorkloadScheduling))
			}
		})
	}
}

// An API server that does not answer yet is waited for: a tree would be placed part by part.
func TestCompositeWaitsForTheServer(t *testing.T) {
	gate, tries := gates(t, nil), 0
	err := enableComposite(t.Context(), gate, func(context.Context, schema.GroupVersionResource) (bool, error) {
		if tries++; tries == 1 {
			return false, errors.New("connection refused")
		}
		return true, nil
	})
	if err != nil || tries != 2 || !gate.Enabled(features.CompositePodGroup) {
		t.Errorf("%d tries, %v", tries, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	down := errors.New("connection refused")
	if err := enableComposite(ctx, gates(t, nil), func(context.Context, schema.GroupVersionResource) (bool, error) { return false, down }); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
}
