package collect

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// A pod that a StatefulSet has yet to make is not tried: what is known of it is another pod, with what the API server wrote into that.
func TestPodsOfNoJobAreNotTried(t *testing.T) {
	yes, replicas := true, int32(3)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "vllm-0", UID: "p", ResourceVersion: "7", Labels: map[string]string{"scheduling.x-k8s.io/pod-group": "vllm"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "vllm", UID: "s", Controller: &yes}}}}
	s := &snapshot.Snapshot{Pods: []*corev1.Pod{pod}, StatefulSets: []*appsv1.StatefulSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "vllm", UID: "s"}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas}}}}
	query := view.Query{Namespace: "a", Name: "vllm"}
	if job, err := view.New(s).Find(query); err != nil || job.Total() != 3 {
		t.Fatalf("got %+v, %v", job, err)
	}
	if pods := missing(s, query); len(pods) > 0 {
		t.Errorf("%s is tried", pods[0].Name)
	}
}
