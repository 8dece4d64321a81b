package resize

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

var (
	mpijobs     = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"}
	batchJobs   = batchv1.SchemeGroupVersion.WithResource("jobs")
	launcherCPU = []string{"spec", "mpiReplicaSpecs", "Launcher", "template", "spec", "containers"}
)

// mpiServer is a server with a job of the MPI Operator. The operator makes a launcher that is gone again at once, of what the job is then, also of a
// job that is suspended; it changes none.
func mpiServer(t *testing.T) *apiServer {
	t.Helper()
	g := clustertest.Gang{Kind: "MPIJob", Workers: 2, GPUs: 2, Missing: 2, More: []clustertest.Role{{Name: "Launcher", Replicas: 1, CPU: "1", Memory: "1Gi", Missing: 1}},
		Job: func(job map[string]any) { job["apiVersion"] = "kubeflow.org/v2beta1" }}
	launcher := &unstructured.Unstructured{}
	launcher.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	launcher.SetNamespace("team")
	launcher.SetName("llama-launcher")
	launcher.SetAnnotations(map[string]string{"cpu": "1"})
	a := serving(t, mpijobs, g, launcher)
	yes, job := true, a.get(t, mpijobs)
	launcher.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": job.GetAPIVersion(), "kind": job.GetKind(), "name": job.GetName(), "uid": string(job.GetUID()), "controller": yes}}
	if err := a.Tracker().Update(batchJobs, launcher, "team"); err != nil {
		t.Fatal(err)
	}
	a.PrependReactor("delete", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		if a.dies >= 0 && a.writes >= a.dies {
			return true, nil, errDead
		}
		a.writes++
		made := launcher.DeepCopy()
		made.SetAnnotations(map[string]string{"cpu": launcherOf(t, a.get(t, mpijobs))})
		return true, nil, a.Tracker().Update(batchJobs, made, "team")
	})
	return a
}

// launcherOf is the cpu that a job has its launcher request.
func launcherOf(t *testing.T, job *unstructured.Unstructured) string {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(job.Object, launcherCPU...)
	if err != nil {
		t.Fatal(err)
	}
	cpu, _, err := unstructured.NestedString(containers[0].(map[string]any), "resources", "requests", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	return cpu
}

// launched is the cpu of the launcher as the job has it, and as it is, and whether the job keeps its change.
func (a *apiServer) launched(t *testing.T) string {
	t.Helper()
	job := a.get(t, mpijobs)
	launcher, err := a.Tracker().Get(batchJobs, "team", "llama-launcher")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("cpu %s, launcher %s, begun %t", launcherOf(t, job), launcher.(*unstructured.Unstructured).GetAnnotations()["cpu"], job.GetAnnotations()[resize.Annotation] != "")
}

// A launcher is made again of the job as it is changed, whenever the program is killed; a job whose launcher alone is missing is not taken back.
func TestLauncherIsThatOfTheChange(t *testing.T) {
	three := resource.MustParse("3")
	change := resize.Change{Roles: []resize.Role{{Name: "Launcher", CPU: &three}}}
	for dies, between := range []string{
		"cpu 1, launcher 1, begun false", "cpu 1, launcher 1, begun true", "cpu 1, launcher 1, begun true",
		"cpu 3, launcher 1, begun true", "cpu 3, launcher 3, begun true", "cpu 3, launcher 3, begun false",
	} {
		a := mpiServer(t)
		a.dies = dies
		err := a.applying(t, change).apply(t.Context())
		if got := a.launched(t); got != between || (err == nil) != (dies == 5) {
			t.Fatalf("killed after %d writes: %s, %v", dies, got, err)
		}
		if err == nil {
			continue
		}
		if hint := failure.From(err).Hint; !strings.Contains(hint, "complete it with: ") || strings.HasPrefix(between, "cpu 3") == strings.Contains(hint, "--abort") {
			t.Errorf("killed after %d writes: %+v", dies, failure.From(err))
		}
		a.dies = -1
		if err := a.applying(t, change).apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := a.launched(t); got != "cpu 3, launcher 3, begun false" {
			t.Errorf("killed after %d writes, and run again: %s", dies, got)
		}
	}
}
