package status

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// written is a status that was written: what, on which object, and the versions
// of that object before and after.
type written struct {
	fields        map[string]any
	uid           types.UID
	before, after string
}

// passing is for how long the phase of a gang that is about to start is not worth
// writing: one that starts at once is Pending, and then partly bound, for a
// moment only, and has its status written once.
func (c *Controller) passing(key gang.Key, old, phase string) time.Duration {
	begins := old == "" || old == string(spv1alpha1.PodGroupPending)
	if !begins || phase == old || phase != string(spv1alpha1.PodGroupPending) && phase != string(spv1alpha1.PodGroupUnknown) {
		delete(c.phases, key)
		return 0
	}
	p, known := c.phases[key]
	if !known || p.reason != phase {
		p = wait{reason: phase, since: c.Clock.Now()}
		c.phases[key] = p
	}
	return patience - c.Clock.Since(p.since)
}

// patchStatus writes the status of a gang's object, if it changed.
func (c *Controller) patchStatus(ctx context.Context, key gang.Key, members []*corev1.Pod) error {
	object, u, ok := c.Objects.Get(key)
	if !ok {
		delete(c.ours, key)
		delete(c.written, key)
		delete(c.phases, key)
		delete(c.fights, key)
		return nil
	}
	shape, writes := shapes[key.Dialect]
	readable := u != nil && object.Unreadable == nil
	if !readable || !writes || len(members) == 0 && c.elsewhere(key, object) {
		return nil
	}
	if len(members) > 0 || c.expected(key, u) {
		c.ours[key] = true
	}
	if !c.ours[key] {
		// A group that none of our pods was ever a member of is another scheduler's.
		return nil
	}
	f := facts{
		version: object.Resource.Version, group: object.Resource.Group, members: len(members),
		need: max(1, c.Gangs.MinCount(key)), counts: schedulerplugins.CountPods(c.current(key, members)), now: metav1.NewTime(c.Clock.Now()),
	}
	staying := schedulerplugins.CountPods(schedulerplugins.Staying(members))
	f.placed = staying.Bound + staying.Succeeded
	if w := c.waiting[key]; w.reported {
		f.incomplete = w.reason
	}
	if group, ok := c.Word(key.Namespace, key.VirtualName()); ok {
		f.word = group.Status.Conditions
	}
	if note, ok := c.Said(key.Namespace, key.VirtualName()); ok && !note.AboveMin {
		f.told = note.Text()
	}
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	fields := shape(status, f)
	last := c.written[key]
	switch {
	case fields == nil || same(status, fields):
		delete(c.phases, key)
		return nil
	case last.uid == u.GetUID() && reflect.DeepEqual(last.fields, fields) && (u.GetResourceVersion() == last.before || u.GetResourceVersion() == last.after):
		return nil // the cache is late, or the API server keeps less than we write
	}
	if left := c.passing(key, text(status["phase"]), text(fields["phase"])); left > 0 {
		c.queue.AddAfter(key, left)
		return nil
	}
	if left := c.fought(key, u, status); left > 0 {
		c.queue.AddAfter(key, left)
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": fields})
	if err != nil {
		return fmt.Errorf("patch status of PodGroup %s/%s: %w", key.Namespace, key.Name, err)
	}
	got, err := c.Dynamic.Resource(object.Resource).Namespace(key.Namespace).
		Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case apierrors.IsNotFound(err):
		// It was deleted, and its event comes; or its definition has no status
		// to write, and then trying again does not help.
		klog.FromContext(ctx).Info("Cannot write the status of a group: not found", "gang", key.String(), "resource", object.Resource)
		return nil
	case err != nil:
		return fmt.Errorf("patch status of PodGroup %s/%s: %w", key.Namespace, key.Name, err)
	}
	c.written[key] = written{fields: fields, uid: u.GetUID(), before: u.GetResourceVersion(), after: got.GetResourceVersion()}
	return nil
}

// expected tells a group without pods whose pods will be ours. Controllers for
// Volcano create no pod before the group is admitted, so somebody must decide
// by the group alone: it is ours if we answer to Volcano's name, or if it names
// us itself.
func (c *Controller) expected(key gang.Key, u *unstructured.Unstructured) bool {
	if key.Dialect != gang.Volcano {
		return false
	}
	if name := u.GetAnnotations()[volcano.SchedulerAnnotation]; name != "" {
		return c.Ours(name)
	}
	return c.Ours(volcano.SchedulerName)
}

// same tells whether a status has these fields already. An absent number is 0.
func same(status, fields map[string]any) bool {
	for name, want := range fields {
		have := status[name]
		if have == nil {
			have = reflect.Zero(reflect.TypeOf(want)).Interface()
		}
		if !reflect.DeepEqual(have, want) {
			return false
		}
	}
	return true
}

// patchCondition says on a pod why it has no place. A pod that says so already is
// left alone.
func (c *Controller) patchCondition(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	_, said := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
	if said != nil && said.Status == corev1.ConditionFalse && said.Reason == reason && said.Message == message {
		return nil
	}
	status := pod.Status.DeepCopy()
	podutil.UpdatePodCondition(status, &corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: pod.Generation,
	})
	_, condition := podutil.GetPodCondition(status, corev1.PodScheduled)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{*condition}},
	})
	if err != nil {
		return err
	}
	_, err = c.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // deleted, or another pod of that name: its own event will come
	}
	return err
}

// Decided reports what the engine decided of a gang, as an event on the gang's
// object, or on one of its pods where it has none.
func (c *Controller) Decided(group *schedulingv1beta1.PodGroup) {
	key, err := gang.ParseVirtualName(group.Namespace, group.Name)
	if err != nil {
		return
	}
	c.Touch(key)
	var subject runtime.Object
	if object, ok := c.object(key); ok {
		subject = object
	} else if members := c.Gangs.Pods(key); len(members) > 0 {
		subject = c.subject(key, members)
	}
	condition := apimeta.FindStatusCondition(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
	switch {
	case subject == nil || condition == nil:
	case condition.Status == metav1.ConditionTrue:
		c.Recorder.Eventf(subject, nil, corev1.EventTypeNormal, ReasonScheduled, "Scheduling", "found a node for every member that the gang needs")
	default:
		c.Recorder.Eventf(subject, nil, corev1.EventTypeWarning, condition.Reason, "Scheduling", "%s", condition.Message)
	}
}

// object refers to the API object of a gang; ok is false where there is none.
func (c *Controller) object(key gang.Key) (ref *corev1.ObjectReference, ok bool) {
	object, _, ok := c.Objects.Get(key)
	if !ok {
		return nil, false
	}
	kind := object.Kind
	return &corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind,
		Namespace: key.Namespace, Name: key.Name, UID: object.UID,
	}, true
}
