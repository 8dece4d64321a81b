package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An owner that any user may write keeps no pod where it is.
func TestDaemonSetPod(t *testing.T) {
	mirror := map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	notController := controller("apps/v1", "DaemonSet")
	notController.Controller = nil
	for name, tt := range map[string]struct {
		owner       metav1.OwnerReference
		annotations map[string]string
		want        bool
	}{
		"of a DaemonSet":                       {controller("apps/v1", "DaemonSet"), nil, true},
		"of a static manifest":                 {controller("v1", "Node"), mirror, true},
		"of a ReplicaSet":                      {controller("apps/v1", "ReplicaSet"), nil, false},
		"of a Job":                             {controller("batch/v1", "Job"), nil, false},
		"of a DaemonSet that does not control": {notController, nil, false},
		"of what is called a DaemonSet, too":   {controller("example.com/v1", "DaemonSet"), nil, false},
		"of a Node, and no mirror":             {controller("v1", "Node"), nil, false},
	} {
		p := aPod("p", nil)
		p.OwnerReferences, p.Annotations = append(p.OwnerReferences, tt.owner), tt.annotations
		if DaemonSetPod(p) != tt.want {
			t.Errorf("%s: %t", name, !tt.want)
		}
	}
	if DaemonSetPod(aPod("p", nil)) {
		t.Error("a pod on its own is one of a DaemonSet")
	}
}
