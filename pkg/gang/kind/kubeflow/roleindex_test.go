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
		want   gang.RoleIndex
		ok     bool
	}{
		{"j-worker-1", map[string]string{role: "worker", index: "2"}, gang.RoleIndex{Role: "worker", Index: 2}, true},
		{"j-worker-1", map[string]string{role: "Worker"}, gang.RoleIndex{Role: "worker", Index: 1}, true},
		{"j-worker-1", map[string]string{role: "worker", index: "x"}, gang.RoleIndex{}, false},
		{"j-worker-1", map[string]string{role: "ps"}, gang.RoleIndex{}, false},
		{"j-launcher-24567", map[string]string{role: "launcher"}, gang.RoleIndex{}, false}, // a random suffix
		{"j-worker-1", nil, gang.RoleIndex{}, false},
		{"worker", map[string]string{role: "worker"}, gang.RoleIndex{}, false},
	}
	for _, tt := range tests {
		got, ok := RoleIndexOf(nil, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: tt.name, Labels: tt.labels}})
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s %v: got %v %v", tt.name, tt.labels, got, ok)
		}
	}
}
