package suspend

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

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
