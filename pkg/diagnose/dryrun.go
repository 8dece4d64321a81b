package diagnose

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/pods"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
)

// Trial is the answer for a job that has not been submitted, and what the cluster would be like if it had been.
type Trial struct {
	*answer.Answer

	w *view.View
	// result is nil for a job that cannot be stored.
	result *stage.Diagnosis
}

// DryRun answers "would this job start now?" for one that has not been submitted: the same stages on a snapshot to which the
// job is added, and the same answer, with exit code 0 where it would start. The snapshot may hold what the API server answered
// to dry-run creates of the job and of its pods. further are objects that are submitted with the job, such as its PodGroup.
func DryRun(ctx context.Context, s *snapshot.Snapshot, job *unstructured.Unstructured, namespace string, o Options, further ...*unstructured.Unstructured) (*Trial, error) {
	kind := job.GroupVersionKind()
	reader, ok := kinds.ByKind(kind.GroupKind())
	if !ok {
		return nil, fmt.Errorf("%s %s: gangctl does not know this kind of job", kind.Kind, job.GetName())
	}
	c := s.Clone()
	job = submitted(job, namespace, s)
	if kind.Group != "batch" && s.Server.Resources != nil && !s.Serves(schema.GroupResource{Group: reader.Group, Resource: reader.Resource}, reader.Kind) {
		q := Query{Kind: reader.Names[0], Namespace: namespace, Name: job.GetName()}
		return &Trial{Answer: notServed(s, q), w: view.New(s)}, nil
	}
	if a := otherVersion(s, reader, job); a != nil {
		return &Trial{Answer: a, w: view.New(s)}, nil
	}
	if exists(s, job) {
		return nil, &ExistsError{Kind: kind.Kind, Namespace: job.GetNamespace(), Name: job.GetName()}
	}
	for _, obj := range append(further, job) {
		if obj.GroupVersionKind().GroupKind() == reader.Makes {
			obj = kinds.MadeFrom(job, obj)
		}
		obj = submitted(obj, namespace, s)
		if p, refused := refusedObject(s, obj); refused {
			c.Probes = append(c.Probes, p)
			continue
		}
		if err := c.PutUntyped(obj); err != nil {
			return nil, err
		}
	}
	c.Finish()
	q := Query{Kind: reader.Names[0], Namespace: job.GetNamespace(), Name: job.GetName()}
	t, gangs, err := try(ctx, c, q, o)
	for n := int32(1); err == nil && n < gangs && t.result.Starts(); n++ {
		t, _, err = try(ctx, t.after(), q, o) // those before it run where they fit
	}
	return t, err
}

// try answers for the first gang of a job that does not run yet, and returns how many gangs are to be tried.
func try(ctx context.Context, s *snapshot.Snapshot, q Query, o Options) (*Trial, int32, error) {
	w := view.New(s)
	w.Assumed = true
	job, err := w.Find(q)
	if err != nil {
		return nil, 0, err
	}
	r, a := explainJob(ctx, w, job, o)
	if a.Verdict == answer.FitsNow {
		a.Exit = answer.ExitOK
	}
	return &Trial{Answer: a, w: w, result: r}, int32(len(w.Gangs(job))), nil
}

// ExistsError reports that a job of the name is there already.
type ExistsError struct{ Kind, Namespace, Name string }

// Error implements error.
func (e *ExistsError) Error() string {
	return fmt.Sprintf("a %s %s/%s exists", e.Kind, e.Namespace, e.Name)
}

func exists(s *snapshot.Snapshot, job *unstructured.Unstructured) bool {
	return slices.ContainsFunc(s.Custom[job.GroupVersionKind().GroupKind()], func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() == job.GetNamespace() && u.GetName() == job.GetName()
	})
}

// refusedObject reports whether a group object could not be stored: its create was refused when it was tried, or its kind is
// not served. The answer to the create has that, as it would have been.
func refusedObject(s *snapshot.Snapshot, obj *unstructured.Unstructured) (snapshot.Probe, bool) {
	for _, p := range s.Probes {
		if p.Kind == obj.GetKind() && p.Namespace == obj.GetNamespace() && p.Name == obj.GetName() && !p.Accepted() {
			_, isJob := kinds.ByKind(obj.GroupVersionKind().GroupKind())
			return p, !isJob
		}
	}
	for _, r := range dialect.Readers() {
		for _, served := range r.Kinds {
			resource := schema.GroupResource{Group: served.Group, Resource: served.Resource}
			if served.GroupKind != obj.GroupVersionKind().GroupKind() || s.Server.Resources == nil || s.Serves(resource, served.Kind) {
				continue
			}
			return snapshot.Probe{Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName(), Code: 404,
				Message: "the cluster does not serve " + resource.String()}, true
		}
	}
	return snapshot.Probe{}, false
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

// After is the cluster for a job that is submitted next: the members of this one run where they were placed and are charged to
// quotas and queues. Of one that does not start the pods wait, unless something keeps them from being made.
func (t *Trial) After() *snapshot.Snapshot {
	c := t.after()
	if c != t.w.Snap {
		c.ResourceQuotas = pods.Submitted(t.w, t.result.Gang, c.ResourceQuotas)
	}
	return c
}

// after is so for the gangs of one job, whose objects were counted with the first.
func (t *Trial) after() *snapshot.Snapshot {
	if t.result == nil || !t.result.Starts() && held(t.result) {
		return t.w.Snap
	}
	g := t.result.Gang
	nodes := t.places()
	var members []*corev1.Pod
	for _, m := range g.Members {
		pod := t.w.Virtual(g, m)
		pod.CreationTimestamp = metav1.NewTime(t.w.Now)
		if node, placed := nodes[m.Name()]; placed {
			run(pod, node, t.w)
		}
		members = append(members, pod)
	}
	c := whatif.Come(t.w.Snap, members)
	if t.result.Starts() {
		if workload := queueing.Reserve(t.w, g); workload != nil {
			kind := workload.GroupVersionKind().GroupKind()
			c.Custom[kind] = append(c.Custom[kind], workload)
		}
	}
	c.Finish()
	return c
}

// held reports whether what stands in a gang's way comes before its pods, or before they may exist.
func held(r *stage.Diagnosis) bool {
	before := []answer.Stage{answer.StageRequest, answer.StageJob, answer.StageController, answer.StagePods, answer.StageQueue}
	return slices.ContainsFunc(r.Findings(), func(f stage.Finding) bool { return slices.Contains(before, f.Stage) })
}

// places are the nodes of the members of a gang that starts, by the members' names.
func (t *Trial) places() map[string]string {
	nodes := map[string]string{}
	if t.result.Starts() {
		for _, placed := range t.Placement {
			nodes[placed.Member] = placed.Node
		}
	}
	return nodes
}

// run lets a pod run on a node.
func run(pod *corev1.Pod, node string, w *view.View) {
	now := metav1.NewTime(w.Now)
	pod.Spec.NodeName = node
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
}
