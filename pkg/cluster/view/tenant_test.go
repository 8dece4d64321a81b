package view

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
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

// A Job, a group and a pod with the uid of a job of another namespace are no parts of it: they are seen as what they are.
func TestPartsOfJobsOfOtherNamespaces(t *testing.T) {
	c := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Name: "llama", Kind: jobset.Kind, Workers: 2})
	c.Namespace("evil")
	c.Add(clustertest.Gang{Namespace: "evil", Name: "vicuna", Kind: "Job", Dialect: gang.SchedulerPlugins, Workers: 2, Nodes: []string{"n1"}})
	s := c.Done()
	var victim *unstructured.Unstructured
	for _, u := range s.Custom[jobset.Reader().GroupKind] {
		victim = u
	}
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(victim, victim.GroupVersionKind())}
	for _, j := range s.Jobs {
		if j.Namespace == "evil" {
			j.OwnerReferences = owner
		}
	}
	for _, list := range s.Custom {
		for _, u := range list {
			if u.GetNamespace() == "evil" {
				u.SetOwnerReferences(owner)
			}
		}
	}
	w := New(s)
	for _, pod := range s.Pods {
		job, err := w.Find(Query{Namespace: pod.Namespace, Name: pod.Name, Kind: "pod"})
		if err != nil || job.Meta.Namespace != pod.Namespace {
			t.Errorf("the job of pod %s/%s is %v, %v", pod.Namespace, pod.Name, job, err)
		}
	}
	for _, d := range w.Groups() {
		if of := w.JobOfGroup(d); d.Key.Namespace == "evil" && of != nil && of.Meta.Namespace != "evil" {
			t.Errorf("group %s is that of %s", d.Key, of)
		}
	}
	if job, err := w.Find(Query{Namespace: "evil", Name: "vicuna"}); err != nil || len(w.Gang(job).ExistingPods()) != 2 {
		t.Errorf("the job is not seen: %v", err)
	}
}
