package gangcache

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
)

// podInfo is one pod, with what compose needs of it.
type podInfo struct {
	pod        *corev1.Pod
	phase      podPhase
	membership gang.Membership
	owner      gang.Identity // the controller, by which budgets find the pod
	job        string        // the job that it is of, by which runs of a gang differ
	key        gang.Key
	member     bool // whether the pod is in a gang, the one of key

	min       int32 // as the pod declares it, 0 for none
	minErr    error
	topology  gang.Topology // as the dialect of its pods has it, which is not in our annotations
	unclear   error         // why that cannot be read
	unapplied []gang.UnappliedRule
	role      string
	missing   string // what it claims and does not exist, while it has no node
}

// podPhase is the phase of a pod as far as its gang can count on it.
type podPhase int

const (
	live    podPhase = iota // it has a node or waits for one
	leaving                 // it has a node and is being deleted
	ended                   // it has succeeded or failed
)

// podSets are pods by phase and UID.
type podSets [3]map[types.UID]*podInfo

func newPodSets() podSets {
	return podSets{map[types.UID]*podInfo{}, map[types.UID]*podInfo{}, map[types.UID]*podInfo{}}
}

func (s podSets) count() int { return len(s[live]) + len(s[leaving]) + len(s[ended]) }

// isLeaving reports whether a member that has a node is being deleted. That may
// take minutes, or never end on a node that is dead, and the member does not help
// its gang any more.
func isLeaving(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.Spec.NodeName != ""
}

func (c *Cache) newPodInfo(pod *corev1.Pod, phase podPhase) *podInfo {
	owner, _ := gang.ControllerOf(pod)
	job := jobset.WholeOf(pod) // the controllers of whose pods are several
	if job == "" {
		job = string(owner.UID)
	}
	return &podInfo{
		pod: pod, phase: phase, membership: gang.MembershipOf(pod, c.precedence(pod.Spec.SchedulerName)), owner: owner, job: job, missing: c.missingOf(pod),
	}
}

// assign makes a pod a member of a gang.
func (c *Cache) assign(info *podInfo, key gang.Key) {
	info.key, info.member, info.min, info.minErr, info.topology, info.unclear, info.unapplied, info.role = key, true, 0, nil, gang.Topology{}, nil, nil, ""
	reader, _ := c.precedence(info.pod.Spec.SchedulerName).Reader(key.Dialect) // a budget has none
	if reader.FromPods != nil {
		d, err := reader.FromPods(key, []*corev1.Pod{info.pod})
		info.minErr, info.topology, info.unclear = err, d.Topology, d.TopologyProblem
		if err == nil {
			info.min, info.unapplied = d.MinMember, d.Unapplied
		}
	}
	if reader.RoleOf != nil {
		info.role = reader.RoleOf(info.pod)
	}
}

// index adds a pod to the indexes by what may change its gang, or whether it is held back.
func (c *Cache) index(info *podInfo) {
	if ns := info.pod.Namespace; len(info.pod.Spec.ResourceClaims) > 0 {
		if c.claiming[ns] == nil {
			c.claiming[ns] = map[*podInfo]bool{}
		}
		c.claiming[ns][info] = true
	}
	for _, key := range info.membership.Keys() {
		if c.named[key] == nil {
			c.named[key] = map[*podInfo]bool{}
		}
		c.named[key][info] = true
	}
	if info.owner.UID != "" {
		if c.owned[info.owner] == nil {
			c.owned[info.owner] = map[*podInfo]bool{}
		}
		c.owned[info.owner][info] = true
	}
}

func (c *Cache) unindex(info *podInfo) {
	if ns := info.pod.Namespace; len(info.pod.Spec.ResourceClaims) > 0 {
		if delete(c.claiming[ns], info); len(c.claiming[ns]) == 0 {
			delete(c.claiming, ns)
		}
	}
	for _, key := range info.membership.Keys() {
		if delete(c.named[key], info); len(c.named[key]) == 0 {
			delete(c.named, key)
		}
	}
	if delete(c.owned[info.owner], info); len(c.owned[info.owner]) == 0 {
		delete(c.owned, info.owner)
	}
}

// batch is one update of the cache, under its lock. The gangs that it touched are
// published together at its end.
type batch struct {
	cache   *Cache
	keys    []gang.Key
	members []types.UID
}

func (b *batch) touch(key gang.Key) {
	if !slices.Contains(b.keys, key) {
		b.keys = append(b.keys, key)
	}
}

// update exchanges a live pod for a later state of it from which the same is derived: it gets a node, its containers start. That is most of what happens to pods, and
// nothing is derived again. ok is false where something may be other than before.
func (c *Cache) update(pod *corev1.Pod) (change Change, ok bool) {
	info := c.pods[live][pod.UID]
	if info == nil || !sameMember(info.pod, pod) {
		return Change{}, false
	}
	if info.pod, info.missing = pod, c.missingOf(pod); info.member {
		change.Keys = []gang.Key{info.key}
	}
	return change, true
}

// sameMember reports whether two states of a pod are the same in all that its membership, and the group of its gang, are derived from.
func sameMember(a, b *corev1.Pod) bool {
	group := func(pod *corev1.Pod) string {
		if pod.Spec.SchedulingGroup == nil {
			return ""
		}
		return ptr.Deref(pod.Spec.SchedulingGroup.PodGroupName, "")
	}
	sameOwner := func(a, b metav1.OwnerReference) bool {
		return a.UID == b.UID && a.Kind == b.Kind && a.Name == b.Name && a.APIVersion == b.APIVersion && ptr.Equal(a.Controller, b.Controller)
	}
	return a.Namespace == b.Namespace && a.Name == b.Name && len(a.Spec.SchedulingGates) == len(b.Spec.SchedulingGates) && a.Spec.SchedulerName == b.Spec.SchedulerName &&
		ptr.Equal(a.Spec.Priority, b.Spec.Priority) && ptr.Equal(a.Spec.PreemptionPolicy, b.Spec.PreemptionPolicy) && group(a) == group(b) &&
		a.CreationTimestamp.Equal(&b.CreationTimestamp) && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) &&
		slices.EqualFunc(a.OwnerReferences, b.OwnerReferences, sameOwner)
}

// join puts a pod into the gang that counts for it now.
func (b *batch) join(info *podInfo) {
	key, ok := b.cache.resolve(info.membership, info.owner)
	if !ok {
		info.key, info.member = gang.Key{}, false
		return
	}
	b.cache.assign(info, key)
	b.cache.entry(key).put(info)
	b.touch(key)
}

func (b *batch) leave(info *podInfo) {
	if !info.member {
		return
	}
	b.cache.entry(info.key).take(info)
	b.touch(info.key)
}

// resolve moves the pods for which another gang counts than before.
func (b *batch) resolve(pods map[*podInfo]bool) {
	for info := range pods {
		key, ok := b.cache.resolve(info.membership, info.owner)
		if ok == info.member && key == info.key {
			continue
		}
		b.leave(info)
		b.join(info)
		if info.phase == live {
			b.members = append(b.members, info.pod.UID)
		}
	}
}

func (b *batch) deleteObject(key gang.Key, kind schema.GroupKind) {
	if e := b.cache.gangs[key]; e != nil {
		delete(e.objects, kind)
		b.touch(key)
		b.resolve(b.cache.named[key])
	}
}

func (b *batch) deleteBudget(key gang.Key, object *Object) {
	owner := gang.Identity{Namespace: key.Namespace, UID: object.Owner}
	keys := b.cache.budgets[owner]
	if at, known := slices.BinarySearchFunc(keys, key, byName); known {
		keys = slices.Delete(keys, at, at+1)
	}
	if b.cache.budgets[owner] = keys; len(keys) == 0 {
		delete(b.cache.budgets, owner)
	}
	delete(b.cache.entry(key).objects, object.GroupKind)
	b.touch(key)
	b.resolve(b.cache.owned[owner])
}

// end publishes the gangs that were touched.
func (b *batch) end() Change {
	change := Change{Keys: b.keys, Members: b.members}
	c := b.cache
	for _, key := range b.keys {
		e := c.entry(key)
		terms := e.agree(c, key.Dialect)
		scheduler := e.alike.scheduler()
		changed, moved := terms != e.terms, e.scheduler != "" && scheduler != e.scheduler
		e.terms, e.scheduler = terms, scheduler
		group, _ := e.compose(c, key)
		if group == nil {
			c.sink.Delete(key.Namespace, key.VirtualName())
		} else {
			c.sink.Set(group)
		}
		if len(e.objects)+e.pods.count() == 0 {
			delete(c.gangs, key)
			continue
		}
		if !changed && !moved {
			continue
		}
		for uid := range e.pods[live] {
			change.Members = append(change.Members, uid)
		}
		if changed && group != nil {
			change.TermsChanged = append(change.TermsChanged, types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
		}
	}
	slices.Sort(change.Members)
	change.Members = slices.Compact(change.Members)
	return change
}

// compare orders pods by name.
func compare(a, b metav1.Object) int {
	return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetUID(), b.GetUID()))
}
