package status

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// deletionSlack is how long after the end of its grace period a pod that is being
// deleted is expected to be gone.
const deletionSlack = 10 * time.Second

// written is a status that was written: the fields, the object, and the versions
// of that object before and after.
type written struct {
	fields        map[string]any
	uid           types.UID
	before, after string
}

// seen reports whether an object is of the version before or after the write.
func (w written) seen(u *unstructured.Unstructured) bool {
	return u.GetResourceVersion() == w.before || u.GetResourceVersion() == w.after
}

// patchStatus writes the status of a gang's object, if it changed.
func (c *Controller) patchStatus(ctx context.Context, key gang.Key, members []*corev1.Pod) error {
	object, u, ok := c.Objects.Get(key)
	if !ok {
		delete(c.ours, key)
		delete(c.written, key)
		delete(c.phases, key)
		delete(c.rewrites, key)
		return nil
	}
	shape, writes := shapes[key.Dialect]
	if !writes || !c.owns(key, object, u, members) {
		return nil
	}
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	fields := shape(status, c.facts(key, object, members))
	if !c.needsWrite(key, u, status, fields) {
		return nil
	}
	return c.writeStatus(ctx, key, object, u, fields)
}

// owns reports whether the status of a gang's object is ours to write. A group that
// never had pods of ours is another scheduler's.
func (c *Controller) owns(key gang.Key, object gangcache.Object, u *unstructured.Unstructured, members []*corev1.Pod) bool {
	readable := u != nil && object.Unreadable == nil
	if !readable || len(members) == 0 && c.ofOtherDialect(key, object) {
		return false
	}
	if len(members) > 0 || c.podsWillBeOurs(key, u) {
		c.ours[key] = true
	}
	return c.ours[key]
}

// needsWrite reports whether an object's status needs these fields now. A gang is looked at
// again when they may be due later.
func (c *Controller) needsWrite(key gang.Key, u *unstructured.Unstructured, status, fields map[string]any) bool {
	last := c.written[key]
	switch {
	case fields == nil || same(status, fields):
		delete(c.phases, key)
		return false
	case last.uid == u.GetUID() && reflect.DeepEqual(last.fields, fields) && last.seen(u):
		return false // the cache is late, or the API server keeps less than we write
	}
	left := c.transient(key, text(status["phase"]), text(fields["phase"]))
	if left <= 0 {
		left = c.limitRewrite(key, u, status)
	}
	if left > 0 {
		c.queue.AddAfter(key, left)
		return false
	}
	return true
}

// writeStatus patches an object's status, and remembers what it wrote.
func (c *Controller) writeStatus(ctx context.Context, key gang.Key, object gangcache.Object, u *unstructured.Unstructured, fields map[string]any) error {
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

// facts gathers what the status of a gang's object is computed from.
func (c *Controller) facts(key gang.Key, object gangcache.Object, members []*corev1.Pod) facts {
	staying := schedulerplugins.CountPods(schedulerplugins.Staying(members))
	f := facts{
		version: object.Resource.Version, group: object.Resource.Group, members: len(members),
		required: max(1, c.Gangs.MinCount(key)), counts: schedulerplugins.CountPods(c.current(key, members)),
		placed: staying.Bound + staying.Succeeded, now: metav1.NewTime(c.Clock.Now()),
	}
	if p := c.incomplete[key]; p.reported {
		f.incomplete, f.lack = p.text, p.lack
	}
	if group, ok := c.VirtualGroup(key.Namespace, key.VirtualName()); ok {
		f.engine = group.Status.Conditions
	}
	if reason, ok := c.LastReported(key.VirtualGroup()); ok && !reason.AboveMin {
		f.reported = reason.Text()
	}
	return f
}

// current returns the members that a phase and its counts are about. One that is
// being deleted counts until it should be gone: a gang that is shut down as usual
// has its status written when its pods are gone, and not before that, too. On a node
// that is dead pods are never gone.
func (c *Controller) current(key gang.Key, members []*corev1.Pod) []*corev1.Pod {
	var current []*corev1.Pod
	var soonest time.Duration
	for _, pod := range members {
		if pod.DeletionTimestamp != nil && !podutil.IsPodTerminal(pod) {
			left := pod.DeletionTimestamp.Add(deletionSlack).Sub(c.Clock.Now())
			if left <= 0 {
				continue
			}
			if soonest == 0 || left < soonest {
				soonest = left
			}
		}
		current = append(current, pod)
	}
	if soonest > 0 {
		c.queue.AddAfter(key, soonest)
	}
	return current
}

// podsWillBeOurs reports whether the pods of a group without pods will be ours.
// Controllers for Volcano create no pod before the group is admitted, so that is
// decided by the group alone: it is ours if we answer to Volcano's name, or if it
// names us itself.
func (c *Controller) podsWillBeOurs(key gang.Key, u *unstructured.Unstructured) bool {
	if key.Dialect != gang.Volcano {
		return false
	}
	if name := u.GetAnnotations()[volcano.SchedulerAnnotation]; name != "" {
		return c.Ours(name)
	}
	return c.Ours(volcano.SchedulerName)
}

// ofOtherDialect reports whether the members that name an object form a gang of
// another dialect that reads objects of its kind. The status is that gang's then.
func (c *Controller) ofOtherDialect(key gang.Key, object gangcache.Object) bool {
	for dialect := range shapes {
		other := gang.Key{Dialect: dialect, Namespace: key.Namespace, Name: key.Name}
		if dialect == key.Dialect || len(c.Gangs.Pods(other)) == 0 {
			continue
		}
		if same, _, ok := c.Objects.Get(other); ok && same.UID == object.UID && same.GroupKind == object.GroupKind {
			return true
		}
	}
	return false
}

// transient returns for how long the phase of a gang that is about to start is not
// worth writing: one that starts at once is Pending, and then partly bound, for a
// moment only, and has its status written once. One that is next waits for that moment.
func (c *Controller) transient(key gang.Key, old, phase string) time.Duration {
	begins := old == "" || old == string(spv1alpha1.PodGroupPending)
	if !begins || phase == old || phase != string(spv1alpha1.PodGroupPending) && phase != string(spv1alpha1.PodGroupUnknown) {
		delete(c.phases, key)
		return 0
	}
	p, known := c.phases[key]
	if !known || p.text != phase {
		p = pending{text: phase, since: c.Clock.Now()}
		c.phases[key] = p
	}
	if phase == string(spv1alpha1.PodGroupPending) && c.Next(key) {
		return patience
	}
	return patience - c.Clock.Since(p.since)
}

// limitRewrite returns for how long a status must not be written again that another
// writer changed after us. That writer may change it back each time.
func (c *Controller) limitRewrite(key gang.Key, u *unstructured.Unstructured, status map[string]any) time.Duration {
	last := c.written[key]
	if last.uid != u.GetUID() || last.seen(u) || same(status, last.fields) {
		return 0
	}
	if c.rewrites[key] == nil {
		c.rewrites[key] = &reasons.Limiter{}
	}
	now := c.Clock.Now()
	if left := c.rewrites[key].Wait(now); left > 0 {
		return left
	}
	c.rewrites[key].Record(now)
	return 0
}

// same reports whether a status has these fields already. An absent number is 0.
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
