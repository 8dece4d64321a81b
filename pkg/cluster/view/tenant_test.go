package view

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
)

// A reference to an owner is the pod's owner's to write: one to a job of another namespace makes no member.
func TestPodsOfOtherNamespacesAreNoMembers(t *testing.T) {
	c := clustertest.New().Nodes(1, 8).Add(clustertest.Gang{Name: "llama", Workers: 2})
	c.Namespace("evil")
	forged := c.S.Pods[0].DeepCopy()
	forged.Namespace, forged.Name, forged.UID, forged.Status.Phase = "evil", "llama-worker-7", "forged", corev1.PodFailed
	c.Put(forged)
	w := New(c.Done())
	job, err := w.Find(Query{Namespace: "team", Name: "llama"})
	if err != nil {
		t.Fatal(err)
	}
	if pods := w.podsOf(job); len(pods) != 2 || pods[0].Namespace != "team" || pods[1].Namespace != "team" || job.Owns(forged) {
		t.Errorf("%d pods, Owns: %v", len(pods), job.Owns(forged))
	}
}
