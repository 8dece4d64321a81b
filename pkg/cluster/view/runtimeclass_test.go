package view

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Admission gives a pod what its RuntimeClass requires of nodes; a pod that does not exist yet has to be judged with it.
func TestVirtualPodsHaveTheFieldsOfTheirRuntimeClass(t *testing.T) {
	class := "sandboxed"
	overhead := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	w := New(&snapshot.Snapshot{RuntimeClasses: []*nodev1.RuntimeClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"pool": "other"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: class}, Overhead: &nodev1.Overhead{PodFixed: overhead}, Scheduling: &nodev1.Scheduling{
			NodeSelector: map[string]string{"pool": "sandboxed"}, Tolerations: []corev1.Toleration{{Key: "sandboxed", Operator: corev1.TolerationOpExists}},
		}},
	}})
	g := &gang.Gang{Job: &gang.Job{Roles: []gang.Role{{Name: "Worker", Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RuntimeClassName: &class, NodeSelector: map[string]string{"zone": "a"}, Tolerations: []corev1.Toleration{{Key: "own"}},
	}}}}}}
	pod := w.Virtual(g, gang.Member{Role: "Worker"})
	if want := map[string]string{"zone": "a", "pool": "sandboxed"}; !maps.Equal(pod.Spec.NodeSelector, want) {
		t.Errorf("selects %v, want %v", pod.Spec.NodeSelector, want)
	}
	if len(pod.Spec.Tolerations) != 2 || pod.Spec.Overhead.Cpu().MilliValue() != 250 {
		t.Errorf("tolerates %v, overhead %v", pod.Spec.Tolerations, pod.Spec.Overhead)
	}
	if template := g.Roles[0].Template.Spec; len(template.NodeSelector) != 1 || len(template.Tolerations) != 1 {
		t.Error("the template itself was changed")
	}
}
