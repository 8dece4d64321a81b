package kubeflow

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// The label counts, and the name only where there is none.
func TestPlaceOf(t *testing.T) {
	const role, index = "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"
	tests := []struct {
		name   string
		labels map[string]string
		want   gang.Place
		ok     bool
	}{
		{"j-worker-1", map[string]string{role: "worker", index: "2"}, gang.Place{Role: "worker", Index: 2}, true},
		{"j-worker-1", map[string]string{role: "Worker"}, gang.Place{Role: "worker", Index: 1}, true},
		{"j-worker-1", map[string]string{role: "worker", index: "x"}, gang.Place{}, false},
		{"j-worker-1", map[string]string{role: "ps"}, gang.Place{}, false},
		{"j-launcher-24567", map[string]string{role: "launcher"}, gang.Place{}, false}, // a random suffix
		{"j-worker-1", nil, gang.Place{}, false},
		{"worker", map[string]string{role: "worker"}, gang.Place{}, false},
	}
	for _, tt := range tests {
		got, ok := PlaceOf(nil, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: tt.name, Labels: tt.labels}})
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s %v: got %v %v", tt.name, tt.labels, got, ok)
		}
	}
}
