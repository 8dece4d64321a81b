package suspend

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gangctl/gangctl/pkg/gang/suspension"
)

func jobOfKind(apiVersion, kind, name string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	u := tfjob(name, nil)
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	if owner != nil {
		yes := true
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes}})
	}
	return u
}

// A controller that resumes its jobs would win. Others only create them.
func TestJobsOfControllers(t *testing.T) {
	for _, c := range []struct{ apiVersion, kind, refusal string }{
		{"example.com/v1", "Sweep", "Job ns/j belongs to Sweep owner, which may resume it at any time"},
		{"example.com/v1", "CronJob", "belongs to CronJob owner"},
		{"batch/v1", "CronJob", ""},
		{"kubeflow.org/v1beta1", "Trial", ""},
	} {
		owner := jobOfKind(c.apiVersion, c.kind, "owner", nil)
		b := newBench(owner, jobOfKind("batch/v1", "Job", "j", owner))
		j, _ := Of(owned("batch/v1", "Job", "j"))
		err := b.Suspend(t.Context(), j, Order{})
		var refused *Refusal
		if c.refusal == "" && (err != nil || !b.ours(j.UID)) || c.refusal != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), c.refusal) || b.ours(j.UID)) {
			t.Errorf("of %s %s: %v", c.apiVersion, c.kind, err)
		}
	}
}

// The Jobs of a JobSet follow it: their pods are those of the JobSet, which is suspended by its own field.
func TestAJobSetIsSuspendedWithItsJobs(t *testing.T) {
	whole := jobOfKind("jobset.x-k8s.io/v1alpha2", "JobSet", "s", nil)
	b := newBench(whole, jobOfKind("batch/v1", "Job", "s-workers-0", whole))
	part, _ := Of(owned("batch/v1", "Job", "s-workers-0"))
	if err := b.Suspend(t.Context(), part, Order{Reason: "Why"}); err != nil {
		t.Fatal(err)
	}
	u, err := b.jobs.Resource(schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}).Namespace("ns").Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend"); !suspended || !b.ours(whole.GetUID()) || !b.ours(part.UID) {
		t.Errorf("suspended %v, ours %v, part %v", suspended, b.ours(whole.GetUID()), b.ours(part.UID))
	}
}

// A JobSet that was made of a TrainJob follows that: its controller would take a change of the JobSet back.
func TestATrainJobIsSuspendedWithItsJobSet(t *testing.T) {
	whole := jobOfKind("trainer.kubeflow.org/v1alpha1", "TrainJob", "t", nil)
	set := jobOfKind("jobset.x-k8s.io/v1alpha2", "JobSet", "t", whole)
	set.SetUID("uid-set") // another object of the same name
	b := newBench(whole, set, jobOfKind("batch/v1", "Job", "t-node-0", set))
	part, _ := Of(owned("batch/v1", "Job", "t-node-0"))
	if err := b.Suspend(t.Context(), part, Order{Reason: "Why"}); err != nil {
		t.Fatal(err)
	}
	for resource, want := range map[schema.GroupVersionResource]bool{
		{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}: true, {Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}: false,
	} {
		u, err := b.jobs.Resource(resource).Namespace("ns").Get(t.Context(), "t", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend"); suspended != want {
			t.Errorf("%s: suspended %v", resource.Resource, suspended)
		}
	}
}

// suspendedByUs is a job that an earlier scheduler suspended.
func suspendedByUs(t *testing.T, job *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	job = job.DeepCopy()
	job.SetLabels(map[string]string{Label: Value})
	if err := unstructured.SetNestedField(job.Object, true, fieldOf(job.GroupVersionKind().Group)...); err != nil {
		t.Fatal(err)
	}
	return job
}

// A scheduler that starts while a job of its predecessor still has pods finds them through what the job is made of: resumed earlier, it would
// get its old pods and its new ones.
func TestAJobOfPartsIsRecalledWithThem(t *testing.T) {
	labels := map[string]string{"jobset.sigs.k8s.io/jobset-name": "t"}
	train := jobOfKind("trainer.kubeflow.org/v1alpha1", "TrainJob", "t", nil)
	set := jobOfKind("jobset.x-k8s.io/v1alpha2", "JobSet", "t", train)
	alone := jobOfKind("jobset.x-k8s.io/v1alpha2", "JobSet", "t", nil)
	for _, u := range []*unstructured.Unstructured{set, alone} {
		u.SetUID("uid-set") // another object of the same name
	}
	mpi := jobOfKind("kubeflow.org/v2beta1", "MPIJob", "t", nil)
	ray := jobOfKind("ray.io/v1", "RayJob", "t", nil)
	for _, c := range []struct {
		whole, between *unstructured.Unstructured // between may be nil
		part           *unstructured.Unstructured
	}{
		{train, set, jobOfKind("batch/v1", "Job", "t-node-0", set)},
		{alone, nil, jobOfKind("batch/v1", "Job", "t-node-0", alone)},
		{mpi, nil, jobOfKind("batch/v1", "Job", "t-launcher", mpi)},
		{ray, nil, jobOfKind("ray.io/v1", "RayCluster", "t-x7k2p", ray)},
	} {
		t.Run(c.whole.GetKind(), func(t *testing.T) {
			whole := suspendedByUs(t, c.whole)
			c.part.SetLabels(labels)
			objects := []runtime.Object{whole, c.part, jobOfKind("batch/v1", "Job", "t-of-another", nil)}
			if c.between != nil {
				objects = append(objects, c.between)
			}
			b := newBench(objects...)
			b.pods, b.podsOf = false, map[types.UID]bool{c.part.GetUID(): true, "uid-t-of-another": true}
			if err := b.Recall(t.Context()); err != nil {
				t.Fatal(err)
			}
			if b.resume(t); !b.ours(whole.GetUID()) || !b.ours(c.part.GetUID()) {
				t.Error("resumed while a part has a pod")
			}
			delete(b.podsOf, c.part.GetUID())
			if b.resume(t); b.ours(whole.GetUID()) {
				t.Error("not resumed")
			}
		})
	}
}

// Who may suspend need not have the right to list: parts that are not found do not keep a job suspended.
func TestPartsThatMayNotBeListed(t *testing.T) {
	whole := suspendedByUs(t, jobOfKind("jobset.x-k8s.io/v1alpha2", "JobSet", "s", nil))
	b := newBench(whole)
	b.pods = false
	if err := b.Recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "", nil)
	answer := error(apierrors.NewServiceUnavailable("away"))
	b.jobs.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, answer })
	if err := b.Resume(t.Context()); err == nil || !strings.Contains(err.Error(), "list the parts of JobSet ns/s: away") || !b.ours(whole.GetUID()) {
		t.Errorf("got %v, ours %v", err, b.ours(whole.GetUID()))
	}
	answer = forbidden
	if err := b.Resume(t.Context()); err != nil || b.ours(whole.GetUID()) {
		t.Errorf("got %v, ours %v", err, b.ours(whole.GetUID()))
	}
}

// The launcher of an MPIJob is a Job that follows it: the MPIJob is suspended, and
// resumed when the pods of both have gone.
func TestAPartIsSuspendedWithItsWhole(t *testing.T) {
	whole := jobOfKind("kubeflow.org/v2beta1", "MPIJob", "m", nil)
	b := newBench(whole, jobOfKind("batch/v1", "Job", "m-launcher", whole))
	pods := map[types.UID]bool{"uid-m": true, "uid-m-launcher": true}
	b.pods, b.podsOf = false, pods
	launcher, _ := Of(owned("batch/v1", "Job", "m-launcher"))
	worker, _ := Of(owned("kubeflow.org/v2beta1", "MPIJob", "m"))
	for _, j := range []Target{launcher, worker, launcher} {
		if err := b.Suspend(t.Context(), j, Order{Reason: "Why"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.eventCount("Why"); n != 1 || !b.ours(worker.UID) || !b.ours(launcher.UID) {
		t.Errorf("told %d times, whole %v, part %v", n, b.ours(worker.UID), b.ours(launcher.UID))
	}
	state := func(j Target) bool {
		u, err := b.jobs.Resource(j.resource).Namespace("ns").Get(t.Context(), j.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return suspension.Suspended(u)
	}
	if !state(worker) || state(launcher) {
		t.Errorf("suspended: whole %v, part %v", state(worker), state(launcher))
	}
	delete(pods, "uid-m")
	if b.resume(t); !state(worker) {
		t.Error("resumed while the part has a pod")
	}
	clear(pods)
	if b.resume(t); state(worker) || b.ours(worker.UID) || b.ours(launcher.UID) {
		t.Error("not resumed, or not forgotten")
	}
}

// A RayCluster is suspended with its RayJob; KubeRay would not suspend one that is to keep its cluster, whose places are taken one by one.
func TestARayJobIsSuspendedWithItsCluster(t *testing.T) {
	for _, shutdown := range []bool{true, false} {
		whole := jobOfKind("ray.io/v1", "RayJob", "r", nil)
		if err := unstructured.SetNestedField(whole.Object, shutdown, "spec", "shutdownAfterJobFinishes"); err != nil {
			t.Fatal(err)
		}
		b := newBench(whole, jobOfKind("ray.io/v1", "RayCluster", "r-x7k2p", whole))
		part, _ := Of(owned("ray.io/v1", "RayCluster", "r-x7k2p"))
		err := b.Suspend(t.Context(), part, Order{Reason: "Why"})
		var refused *Refusal
		if shutdown && (err != nil || !b.ours(whole.GetUID())) || !shutdown && (!errors.As(err, &refused) || !refused.singly || !strings.Contains(err.Error(), "RayJob ns/r cannot be suspended")) {
			t.Errorf("shutdown %v: got %v, ours %v", shutdown, err, b.ours(whole.GetUID()))
		}
	}
}
