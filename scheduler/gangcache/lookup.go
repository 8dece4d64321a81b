package gangcache

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
)

// Keys lists the gangs that have pods of ours, those that have ended included, by
// namespace, name and dialect. Groups without such a pod may be another
// scheduler's.
func (c *Cache) Keys() []gang.Key {
	c.mu.RLock()
	defer c.mu.RUnlock()
	keys := make([]gang.Key, 0, len(c.gangs))
	for key, e := range c.gangs {
		if e.pods.count() > 0 {
			keys = append(keys, key)
		}
	}
	return ordered(keys)
}

// All lists the gangs of Keys and those of which there is an object only.
func (c *Cache) All() []gang.Key {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return ordered(slices.Collect(maps.Keys(c.gangs)))
}

func ordered(keys []gang.Key) []gang.Key {
	slices.SortFunc(keys, func(a, b gang.Key) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Dialect, b.Dialect))
	})
	return keys
}

// Pods lists the pods of a gang by name, those included that have ended or are
// being deleted. Those of an earlier gang of the same name are not.
func (c *Cache) Pods(key gang.Key) []*corev1.Pod {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.gangs[key]
	if e == nil {
		return nil
	}
	var pods []*corev1.Pod
	current := e.current()
	for _, phase := range []podPhase{ended, live, leaving} {
		for uid, info := range e.pods[phase] {
			// One that ended a moment ago may still be known as live.
			if phase == ended && current(info) || phase != ended && e.pods[ended][uid] == nil {
				pods = append(pods, info.pod)
			}
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return compare(a, b) })
	return pods
}

// Object returns the API object that declares a gang; ok is false where there
// is none.
func (c *Cache) Object(key gang.Key) (object Object, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.gangs[key]; e != nil {
		if found := e.object(); found != nil {
			return *found, true
		}
	}
	return Object{}, false
}

// MinCount returns the number of members that a gang declares as its minimum; 0
// where that is not known.
func (c *Cache) MinCount(key gang.Key) int32 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.gangs[key]; e != nil {
		n, _ := e.minCount(c, key)
		return n
	}
	return 0
}

// Required returns the number of members of a gang that must have a node now,
// those that have completed not counted, and the priority of all of them. It does
// not depend on how many members exist; ok is false for a gang that is not
// declared.
func (c *Cache) Required(key gang.Key) (count, priority int32, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.gangs[key]
	if e == nil {
		return 0, 0, false
	}
	n, _ := e.minCount(c, key)
	if n == 0 {
		return 0, 0, false
	}
	if object := e.object(); object != nil && object.Basic {
		return 0, 0, false
	}
	return max(1, n-e.completed()), e.terms.Priority, true
}

// Priority returns the priority of all members of a gang, whether it is declared
// or not.
func (c *Cache) Priority(key gang.Key) int32 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.gangs[key]; e != nil {
		return e.terms.Priority
	}
	return 0
}

// Completed returns the number of members of a gang that have succeeded; those of
// an earlier gang of the same name do not count.
func (c *Cache) Completed(key gang.Key) int32 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if e := c.gangs[key]; e != nil {
		return e.completed()
	}
	return 0
}

// Ends returns how many members of a gang may run yet, and if none may, how many have succeeded and failed. A pod that has ended may be
// missing for a moment, because it is read by another watch.
func (c *Cache) Ends(key gang.Key) (left, succeeded, failed int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e := c.gangs[key]
	if e == nil {
		return 0, 0, 0
	}
	if left = len(e.pods[live]) + len(e.pods[leaving]); left > 0 {
		return left, 0, 0
	}
	for _, info := range e.pods[ended] {
		if info.pod.Status.Phase == corev1.PodFailed {
			failed++
		} else {
			succeeded++
		}
	}
	return 0, succeeded, failed
}

// GangOf returns the gang of a pod of ours that has not ended.
func (c *Cache) GangOf(uid types.UID) (key gang.Key, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, phase := range []podPhase{live, leaving} {
		if info := c.pods[phase][uid]; info != nil {
			return info.key, info.member
		}
	}
	return gang.Key{}, false
}

// NamedGang returns the gang that a pod names, whatever its scheduler is and
// whichever objects exist: a pod of another scheduler is better taken for a member
// too often than not often enough.
func (c *Cache) NamedGang(pod *corev1.Pod) (key gang.Key, ok bool) {
	c.mu.Lock()
	precedence := c.foreignPrecedence(pod.Spec.SchedulerName)
	c.mu.Unlock()
	keys := gang.MembershipOf(pod, precedence).Keys()
	if len(keys) == 0 {
		return gang.Key{}, false
	}
	return keys[0], true
}

// View returns a pod as the engine is to see it: a member of a gang refers to the
// virtual PodGroup and has the gang's priority and schedulerName, which the engine requires of all
// members. It is a copy, which is never sent to the API server. A pod that is in
// no gang is returned as it is, without Kubernetes' own field, which would name a
// group that the engine cannot know. So is a member that is gated: the engine tries
// no member of a group while one of them is, and those without gates may be enough.
// One of which a claim does not exist is shown as gated for that.
func (c *Cache) View(pod *corev1.Pod) *corev1.Pod {
	c.mu.RLock()
	info := c.pods[live][pod.UID]
	var terms gang.Terms
	var scheduler string
	held := info != nil && info.heldBack(pod)
	member := info != nil && info.member && !held && (len(pod.Spec.SchedulingGates) == 0 || info.key.Dialect.GatedTogether())
	name := ""
	if member {
		e := c.gangs[info.key]
		terms, scheduler, name = e.terms, e.scheduler, info.key.VirtualName()
	}
	c.mu.RUnlock()
	if held {
		return withClaimGate(pod)
	}
	if !member {
		if pod.Spec.SchedulingGroup == nil {
			return pod
		}
		return withoutField(pod)
	}
	view := *pod
	view.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	view.Spec.SchedulerName = scheduler
	view.Spec.Priority = &terms.Priority
	view.Spec.PreemptionPolicy = nil
	if terms.Policy != "" {
		view.Spec.PreemptionPolicy = &terms.Policy
	}
	return &view
}

// MayJoin reports whether a pod that is in no gang may be in one when the budget of
// its controller is read. Such pods name no gang. Budgets make gangs for
// kube-batch, and wherever one did before.
func (c *Cache) MayJoin(pod *corev1.Pod) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	info := c.pods[live][pod.UID]
	return info != nil && !info.member && info.owner.UID != "" && pod.Spec.NodeName == "" &&
		(pod.Spec.SchedulerName == kubebatch.SchedulerName || len(c.budgets) > 0)
}

// Readers are the dialects that the scheduler reads.
func Readers() []gang.Reader {
	return slices.DeleteFunc(dialect.Readers(), func(r gang.Reader) bool { return !dialect.ReadByOurs(r) })
}

// resolve returns the gang of a pod: the one that it names, or that of a budget for the pods of its controller.
func (c *Cache) resolve(m gang.Membership, owner gang.Identity) (key gang.Key, ok bool) {
	exists := func(key gang.Key) bool { e := c.gangs[key]; return e != nil && len(e.objects) > 0 }
	if key, ok := m.Resolve(exists); ok {
		return key, true
	}
	if keys := c.budgets[owner]; len(keys) > 0 && owner.UID != "" {
		return keys[0], true
	}
	return gang.Key{}, false
}

// byName orders the gangs of one namespace and dialect.
func byName(a, b gang.Key) int { return strings.Compare(a.Name, b.Name) }
