package setting

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// other differs from the defaults in every field.
func other() Settings {
	return Settings{
		Nodes: 7, CPU: resource.MustParse("9"), Memory: resource.MustParse("1Gi"), GPUs: 2, GPUResource: "amd.com/gpu",
		NodeFile: "/nodes.yaml", Scheduler: None, Serve: "y", NativeGangs: true, Operator: false, OperatorGangScheduler: "x", RunImage: "a=/b", Kubeconfig: "/kc",
		Port: 6443, RunFor: time.Hour, FailRate: 0.5,
	}
}

func TestOverlay(t *testing.T) {
	have := reflect.ValueOf(other())
	for i := range have.NumField() {
		if reflect.DeepEqual(have.Field(i).Interface(), reflect.ValueOf(Defaults()).Field(i).Interface()) {
			t.Fatalf("the test does not cover %s", have.Type().Field(i).Name)
		}
	}
	if got := Defaults().Overlay(other(), func(string) bool { return true }); !reflect.DeepEqual(got, other()) {
		t.Errorf("all flags typed: got %+v", got)
	}
	if got := other().Overlay(Defaults(), func(string) bool { return false }); !reflect.DeepEqual(got, other()) {
		t.Errorf("no flag typed: got %+v", got)
	}
}

func TestOverlayGivesWay(t *testing.T) {
	base := other()
	base.Operator = true
	tests := []struct {
		name       string
		typed      []string
		file, gang string
	}{
		{name: "something else", typed: []string{"gpus"}, file: "/nodes.yaml", gang: "x"},
		{name: "nodes instead of a file", typed: []string{"nodes"}, gang: "x"},
		{name: "no operator any more", typed: []string{"operator"}, file: "/nodes.yaml"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			typed := Defaults()
			typed.Operator = false
			got := base.Overlay(typed, func(flag string) bool { return slices.Contains(tt.typed, flag) })
			if got.NodeFile != tt.file || got.OperatorGangScheduler != tt.gang {
				t.Errorf("got %+v", got)
			}
		})
	}
}
