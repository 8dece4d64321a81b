package suspend

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// owner references are the users' to write: circles end, and so do chains.
func TestJobsThatOwnEachOther(t *testing.T) {
	job := func(name string, owner string) *unstructured.Unstructured {
		return jobOfKind("batch/v1", "Job", name, jobOfKind("batch/v1", "Job", owner, nil))
	}
	for name, objects := range map[string][]*unstructured.Unstructured{
		"itself":  {job("a", "a")},
		"a pair":  {job("a", "b"), job("b", "a")},
		"a chain": {job("a", "b"), job("b", "c"), job("c", "d"), job("d", "e"), jobOfKind("batch/v1", "Job", "e", nil)},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			for _, o := range objects {
				if err := b.jobs.Tracker().Add(o); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			done := make(chan error, 1)
			j, _ := Of(owned("batch/v1", "Job", "a"))
			go func() { done <- b.Suspend(ctx, j, Order{}) }()
			select {
			case err := <-done:
				var refused *Refusal
				if !errors.As(err, &refused) || !Singly(err) || !strings.Contains(err.Error(), "Job ns/a") {
					t.Errorf("got %v, want a refusal that names it", err)
				}
			case <-ctx.Done():
				t.Fatal("it does not end")
			}
			if n := len(b.jobs.Actions()); n > maxOwners+2 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A job that fails without its pods gives them back only as a whole: owners that no controller wrote do not make it immune.
func TestBrittleJobsThatOwnEachOther(t *testing.T) {
	job := func(name string, owner string) *unstructured.Unstructured {
		return jobOfKind("kubeflow.org/v1", "TFJob", name, jobOfKind("kubeflow.org/v1", "TFJob", owner, nil))
	}
	for name, objects := range map[string][]runtime.Object{
		"itself":  {job("llama", "llama")},
		"a pair":  {job("llama", "b"), job("b", "llama")},
		"a chain": {job("llama", "b"), job("b", "c"), job("c", "d"), job("d", "e"), job("e", "f")},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(objects...)
			j, _ := Of(llama)
			if err := b.Suspend(t.Context(), j, Order{}); err != nil || !isSuspended(b.get(t)) || !b.ours(j.UID) {
				t.Errorf("not suspended: %v", err)
			}
		})
	}
}

// No pod is immune by a label or a reference that any user may write.
func TestWhatDoesNotProtectAJob(t *testing.T) {
	queued := map[string]string{kueue.QueueLabel: "q"}
	belongs := func(apiVersion, kind string) *unstructured.Unstructured {
		return jobOfKind("kubeflow.org/v1", "TFJob", "llama", jobOfKind(apiVersion, kind, "owner", nil))
	}
	another := jobOfKind("example.com/v1", "Owner", "owner", nil)
	another.SetUID("another")
	notServed := apierrors.NewNotFound(schema.GroupResource{Group: kueue.Group, Resource: "workloads"}, "")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "owners"}, "owner", nil)
	for name, c := range map[string]struct {
		job    *unstructured.Unstructured
		others []runtime.Object
		verb   string
		answer error
	}{
		"a queue without Kueue":          {job: tfjob("llama", queued), verb: "list", answer: notServed},
		"a queue without a Workload":     {job: tfjob("llama", queued), others: []runtime.Object{workload("other", "uid-other")}},
		"a Workload of another job":      {job: tfjob("llama", queued), others: []runtime.Object{workload("llama", "uid-other")}},
		"an owner that is not there":     {job: belongs("example.com/v1", "Owner")},
		"an owner of another UID":        {job: belongs("example.com/v1", "Owner"), others: []runtime.Object{another}},
		"a job that is not there":        {job: belongs("kubeflow.org/v1", "PyTorchJob")},
		"a pod":                          {job: belongs("v1", "Pod"), others: []runtime.Object{jobOfKind("v1", "Pod", "owner", nil)}},
		"a PodDisruptionBudget":          {job: belongs("policy/v1", "PodDisruptionBudget"), others: []runtime.Object{jobOfKind("policy/v1", "PodDisruptionBudget", "owner", nil)}},
		"a ResourceClaim":                {job: belongs("resource.k8s.io/v1", "ResourceClaim"), others: []runtime.Object{jobOfKind("resource.k8s.io/v1", "ResourceClaim", "owner", nil)}},
		"a PodGroup of Kubernetes' own":  {job: belongs("scheduling.k8s.io/v1beta1", "PodGroup"), others: []runtime.Object{jobOfKind("scheduling.k8s.io/v1beta1", "PodGroup", "owner", nil)}},
		"an owner that must not be read": {job: belongs("example.com/v1", "Owner"), verb: "get", answer: forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(append(c.others, c.job)...)
			b.jobs.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				resource := action.GetResource().Resource
				return c.answer != nil && action.GetVerb() == c.verb && resource != "tfjobs", nil, c.answer
			})
			j, _ := Of(llama)
			if err := b.Suspend(t.Context(), j, Order{}); err != nil || !isSuspended(b.get(t)) {
				t.Errorf("not suspended: %v", err)
			}
		})
	}
}

// A reference that no object can have names an owner that is not there, to a real client, too.
func TestReferencesThatNothingCanHave(t *testing.T) {
	long := strings.Repeat("a", 2<<20) // more than a server takes
	for name, owner := range map[string]metav1.OwnerReference{
		"a path for a name":                   {APIVersion: "example.com/v1", Kind: "Owner", Name: "a/b"},
		"an escape for a name":                {APIVersion: "example.com/v1", Kind: "Owner", Name: "a%2fb"},
		"a parent for a name":                 {APIVersion: "example.com/v1", Kind: "Owner", Name: ".."},
		"no name":                             {APIVersion: "example.com/v1", Kind: "Owner"},
		"a long name":                         {APIVersion: "example.com/v1", Kind: "Owner", Name: long},
		"a long kind":                         {APIVersion: "example.com/v1", Kind: long, Name: "owner"},
		"a job with a path for a name":        {APIVersion: "kubeflow.org/v1", Kind: "PyTorchJob", Name: "a/b"},
		"a kind that leads to the job itself": {APIVersion: "example.com/v1", Kind: "../../../../kubeflow.org/v1/namespaces/ns/tfjob", Name: "llama"},
		"a version that is a parent":          {APIVersion: "example.com/..", Kind: "Owner", Name: "owner"},
		"a group that is a parent":            {APIVersion: "../v1", Kind: "Owner", Name: "owner"},
	} {
		t.Run(name, func(t *testing.T) {
			job := tfjob("llama", nil)
			owner.UID, owner.Controller = job.GetUID(), ptr.To(true)
			job.SetOwnerReferences([]metav1.OwnerReference{owner})
			api := &liveAPI{job: job}
			s := live(t, api)
			j, _ := Of(llama)
			if err := s.Suspend(t.Context(), j, Order{}); err != nil || !isSuspended(api.job) {
				t.Errorf("not suspended: %.200v", err)
			}
			for _, path := range api.paths {
				if path != llamaPath {
					t.Errorf("requested %.200s", path)
				}
			}
		})
	}
}

// A pod is no more protected by a job that is not there than by none.
func TestPodsOfJobsThatAreNotThere(t *testing.T) {
	if j, ok := Of(owned("kubeflow.org/v1", "TFJob", "a/b")); ok {
		t.Errorf("%s can be", j)
	}
	s := live(t, &liveAPI{})
	j, _ := Of(owned("kubeflow.org/v1", "PyTorchJob", "nowhere"))
	if err := s.Check(t.Context(), j); !Singly(err) {
		t.Errorf("its pods cannot be deleted one by one: %v", err)
	}
}
