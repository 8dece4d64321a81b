package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	// suspendedLabel marks a job that we suspended, so that whoever schedules
	// next resumes it.
	suspendedLabel = "gangctl.dev/suspended-by"
	// suspendedValue is our value of it.
	suspendedValue = "gang-scheduler"
	// kueueLabel is on jobs whose suspension is Kueue's to decide.
	kueueLabel = "kueue.x-k8s.io/queue-name"
)

// job is an object that creates the pods of a gang and takes them back if it is
// suspended. For those of the Training Operator there is no other way: it counts
// a member that is being deleted as one that failed.
type job struct {
	resource        schema.GroupVersionResource
	kind            string
	namespace, name string
	uid             types.UID
	field           []string // of the suspension
}

// jobOf returns the job of a pod; ok is false for one that has none.
func jobOf(pod *corev1.Pod) (j job, ok bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return job{}, false
	}
	group, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return job{}, false
	}
	j = job{
		resource: group.WithResource(strings.ToLower(owner.Kind) + "s"), kind: owner.Kind,
		namespace: pod.Namespace, name: owner.Name, uid: owner.UID, field: fieldOf(group.Group),
	}
	return j, j.field != nil
}

// fieldOf is where the jobs of an API group are suspended; nil where they are not.
func fieldOf(group string) []string {
	switch group {
	case "kubeflow.org":
		return []string{"spec", "runPolicy", "suspend"}
	case "batch":
		return []string{"spec", "suspend"}
	}
	return nil
}

// jobResources are the jobs that can be suspended: those that our rights name.
func jobResources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Group: "batch", Version: "v1", Resource: "jobs"},
		{Group: "kubeflow.org", Version: "v1", Resource: "tfjobs"},
		{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"},
		{Group: "kubeflow.org", Version: "v1", Resource: "mpijobs"},
		{Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"},
	}
}

func (j job) String() string { return fmt.Sprintf("%s %s/%s", j.kind, j.namespace, j.name) }

func (j job) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: j.resource.GroupVersion().String(), Kind: j.kind, Namespace: j.namespace, Name: j.name, UID: j.uid,
	}
}

// suspend has the controller of a job delete its pods. Why is for its users.
func (c *Controller) suspend(ctx context.Context, j job, why string) error {
	if _, done := c.suspended[j.uid]; done {
		return nil
	}
	if !slices.Contains(jobResources(), j.resource) {
		return &refusal{fmt.Sprintf("%s is of a kind that is not known to give its pods back", j)}
	}
	jobs := c.Dynamic.Resource(j.resource).Namespace(j.namespace)
	object, err := jobs.Get(ctx, j.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get %s: %w", j, err)
	}
	switch suspended, _, _ := unstructured.NestedBool(object.Object, j.field...); {
	case object.GetUID() != j.uid || suspended:
		return nil // its pods are on their way out
	case object.GetLabels()[kueueLabel] != "":
		return &refusal{fmt.Sprintf("%s is Kueue's to suspend", j)}
	}
	if object, err = c.patch(ctx, j, true, suspendedValue); err != nil {
		return fmt.Errorf("suspend %s: %w", j, err)
	}
	if suspended, _, _ := unstructured.NestedBool(object.Object, j.field...); !suspended {
		if _, err := c.patch(ctx, j, true, nil); err != nil {
			return fmt.Errorf("unmark %s: %w", j, err)
		}
		return &refusal{fmt.Sprintf("%s cannot be suspended: its API has no field %s", j, strings.Join(j.field, "."))}
	}
	c.suspended[j.uid] = j
	c.Recorder.Eventf(j.reference(), nil, corev1.EventTypeWarning, ReasonEvicted, "Scheduling", "suspended, and resumed when its pods are gone: %s", why)
	return nil
}

// resume lets the jobs create their pods again that have none left. Earlier they
// must not: the operator would take the old pods for new ones that failed.
func (c *Controller) resume(ctx context.Context) error {
	var failed error
	for uid, j := range c.suspended {
		if !c.Synced() || c.Owned(uid) {
			continue
		}
		object, err := c.Dynamic.Resource(j.resource).Namespace(j.namespace).Get(ctx, j.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && object.GetUID() != uid) {
			delete(c.suspended, uid)
			continue
		}
		if err == nil {
			_, err = c.patch(ctx, j, false, nil)
		}
		if err != nil {
			failed = fmt.Errorf("resume %s: %w", j, err)
			continue
		}
		delete(c.suspended, uid)
		c.Recorder.Eventf(j.reference(), nil, corev1.EventTypeNormal, ReasonResumed, "Scheduling", "its pods are gone: resumed, to be scheduled as a whole")
	}
	return failed
}

// patch suspends a job or ends that, and marks it; nil takes the mark away.
func (c *Controller) patch(ctx context.Context, j job, suspend bool, mark any) (*unstructured.Unstructured, error) {
	change := map[string]any{"metadata": map[string]any{"uid": j.uid, "labels": map[string]any{suspendedLabel: mark}}}
	if err := unstructured.SetNestedField(change, suspend, j.field...); err != nil {
		return nil, err
	}
	data, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return c.Dynamic.Resource(j.resource).Namespace(j.namespace).Patch(ctx, j.name, types.MergePatchType, data, metav1.PatchOptions{})
}

// recall finds the jobs that an earlier scheduler suspended. Where it may not
// look it cannot have suspended any.
func (c *Controller) recall(ctx context.Context) {
	logger := klog.FromContext(ctx)
	for _, resource := range jobResources() {
		list, err := c.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: suspendedLabel + "=" + suspendedValue})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			logger.Error(err, "Cannot look for jobs that an earlier scheduler suspended", "resource", resource.GroupResource())
			continue
		}
		for _, object := range list.Items {
			c.suspended[object.GetUID()] = job{
				resource: resource, kind: object.GetKind(), namespace: object.GetNamespace(), name: object.GetName(),
				uid: object.GetUID(), field: fieldOf(resource.Group),
			}
		}
	}
}
