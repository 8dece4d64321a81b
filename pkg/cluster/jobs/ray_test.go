package jobs

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/gang"
)

const rayPath = "/apis/ray.io/v1/namespaces/research/"

// rayObject is a RayJob, or a RayCluster.
func rayObject(kind, name string, spec, status map[string]any, owners ...any) map[string]any {
	return map[string]any{"apiVersion": "ray.io/v1", "kind": kind, "spec": spec, "status": status,
		"metadata": map[string]any{"namespace": "research", "name": name, "uid": kind + "-" + name, "ownerReferences": owners}}
}

// serveRay serves a RayJob, unless something hides it, with the RayCluster that was made of it, one pod of that, and a RayCluster by itself.
func serveRay(t *testing.T, hide func(s *kubetest.Server, paths ...string)) *kubetest.Server {
	s := kubetest.New(t)
	cluster := map[string]any{"headGroupSpec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "ray"}}}}}}
	owner := map[string]any{"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "llama", "uid": "RayJob-llama", "controller": true}
	job := rayObject("RayJob", "llama", map[string]any{"rayClusterSpec": cluster}, map[string]any{"jobDeploymentStatus": "Running", "rayClusterName": "llama-x7k2p"})
	made := rayObject("RayCluster", "llama-x7k2p", cluster, nil, owner)
	s.Answer("GET "+rayPath+"rayclusters", 200, listOf("RayCluster", made, rayObject("RayCluster", "alone", cluster, nil)))
	if hide == nil {
		s.Answer("GET "+rayPath+"rayjobs", 200, listOf("RayJob", job))
		s.Answer("GET "+rayPath+"rayjobs/llama", 200, job)
	} else {
		hide(s, rayPath+"rayjobs", rayPath+"rayjobs/llama")
	}
	s.Answer("GET "+rayPath+"rayclusters/llama-x7k2p", 200, made)
	controller := true
	head := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "h", Labels: map[string]string{"ray.io/cluster": "llama-x7k2p"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayCluster", Name: "llama-x7k2p", UID: "RayCluster-llama-x7k2p", Controller: &controller}}}}
	s.Answer("GET "+podsPath, 200, kubetest.PodList(head))
	s.Answer("GET "+podsPath+"/h", 200, head)
	return s
}

// A RayJob is listed, and its RayCluster is not; its pods are those of the RayCluster.
func TestTopmost(t *testing.T) {
	client, err := serveRay(t, nil).Client()
	if err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context(), client, Selection{Namespace: "research"})
	if err != nil {
		t.Fatal(err)
	}
	var refs []string
	for _, j := range all.Jobs {
		refs = append(refs, j.Ref())
	}
	if got := strings.Join(refs, " "); got != "raycluster.ray.io/alone rayjob.ray.io/llama" {
		t.Errorf("got %s", got)
	}
	job, pod, err := OfPod(t.Context(), client, "research", "h")
	if err != nil || job.Ref() != "rayjob.ray.io/llama" || pod.Name != "h" {
		t.Fatalf("got %v, %v", job, err)
	}
	pods, err := PodsOf(t.Context(), client, job)
	if err != nil || len(pods) != 1 || job.PodSelector(pods) != "ray.io/cluster=llama-x7k2p" {
		t.Errorf("got %v, %v, %s", pods, err, job.PodSelector(pods))
	}
	many, err := PodsOfAll(t.Context(), client, "research", []*gang.Job{job}, nil)
	if err != nil || len(many[job.Meta.UID]) != 1 {
		t.Errorf("among all: %v, %v", many, err)
	}
}

// The RayCluster of a RayJob that one may not list is what is seen of it.
func TestTopmostThatMayBeSeen(t *testing.T) {
	client, err := serveRay(t, forbid).Client()
	if err != nil {
		t.Fatal(err)
	}
	all, err := List(t.Context(), client, Selection{Namespace: "research"})
	if err != nil || len(all.Jobs) != 2 {
		t.Errorf("got %+v, %v", all, err)
	}
	job, _, err := OfPod(t.Context(), client, "research", "h")
	if err != nil || job.Ref() != "raycluster.ray.io/llama-x7k2p" {
		t.Errorf("got %v, %v", job, err)
	}
}

// So is the RayCluster of a RayJob that is gone.
func TestTopmostThatIsThere(t *testing.T) {
	client, err := serveRay(t, notFound).Client()
	if err != nil {
		t.Fatal(err)
	}
	job, _, err := OfPod(t.Context(), client, "research", "h")
	if err != nil || job.Ref() != "raycluster.ray.io/llama-x7k2p" {
		t.Errorf("got %v, %v", job, err)
	}
}
