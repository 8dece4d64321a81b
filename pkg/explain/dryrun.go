package explain

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/explain/advice"
	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/ladder"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/snapshot"
	"github.com/gangctl/gangctl/pkg/workload/registry"
)

// DryRun answers "would this job start now?" for one that has not been submitted: the same stages on a snapshot to which the
// job is added, and the same answer, with exit code 0 where it would start. The snapshot may hold what the API server said
// to dry-run creates of the job and of its pods. further are objects that are submitted with the job, such as its PodGroup.
func DryRun(ctx context.Context, s *snapshot.Snapshot, job *unstructured.Unstructured, namespace string, o Options, further ...*unstructured.Unstructured) (*answer.Answer, error) {
	kind := job.GroupVersionKind()
	reader, ok := registry.ByKind(kind.GroupKind())
	if !ok {
		return nil, fmt.Errorf("%s %s: gangctl does not know this kind of job", kind.Kind, job.GetName())
	}
	c := s.Clone()
	job = submitted(job, namespace, s)
	if kind.Group != "batch" && s.Server.Resources != nil && !s.Serves(schema.GroupResource{Group: reader.Group, Resource: reader.Resource}, reader.Kind) {
		q := Question{Kind: reader.Words[0], Namespace: namespace, Name: job.GetName()}
		return absent(world.New(s), q), nil
	}
	for _, obj := range append(further, job) {
		if err := c.PutUntyped(submitted(obj, namespace, s)); err != nil {
			return nil, err
		}
	}
	c.Finish()
	w := world.New(c)
	w.Assumed = true
	subject, err := w.Find(Question{Kind: reader.Words[0], Namespace: job.GetNamespace(), Name: job.GetName()})
	if err != nil {
		return nil, err
	}
	opts := ladder.Options{Budget: o.Budget}
	r := ladder.Climb(ctx, w, subject, opts)
	var actions []answer.Action
	if !o.NoAdvice {
		within, cancel := context.WithTimeout(ctx, defaultAdviceBudget)
		actions = advice.Search(within, w, r, opts)
		cancel()
	}
	a := compose(w, r, actions)
	if a.Verdict == answer.FitsNow {
		a.Exit = answer.ExitOK
	}
	return a, nil
}

// submitted is the object as the API server would store it.
func submitted(obj *unstructured.Unstructured, namespace string, s *snapshot.Snapshot) *unstructured.Unstructured {
	u := obj.DeepCopy()
	if u.GetNamespace() == "" {
		u.SetNamespace(namespace)
	}
	if u.GetUID() == "" {
		u.SetUID(types.UID("submitted:" + u.GetKind() + "/" + u.GetNamespace() + "/" + u.GetName()))
	}
	u.SetCreationTimestamp(metav1.NewTime(s.At))
	return u
}
