package replacement

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// view is the cluster as a scheduling cycle sees it.
type view struct {
	snapshot fwk.SharedLister
	// pods are the informer's, which is never behind the snapshot.
	pods corelisters.PodLister
}

func (t *Tracker) view() view { return view{snapshot: t.engine.Snapshot(), pods: t.engine.Pods()} }

// placed counts the members of a gang that have a place and do not leave it.
func (v view) placed(group types.NamespacedName) int {
	state, err := v.snapshot.PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return 0
	}
	return state.ScheduledPodsCount()
}

// alive reports whether the pod of a slot has its node, whatever the snapshot
// has: one that was bound a moment ago is not in it yet.
func (v view) alive(s *slot) bool {
	pod := v.find(s.pod)
	return pod != nil && pod.Spec.NodeName == s.node
}

// find returns a pod as it is now; nil if it is gone.
func (v view) find(pod *corev1.Pod) *corev1.Pod {
	known, err := v.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || known.UID != pod.UID {
		return nil
	}
	return known
}

// refresh derives the claims from the places and the snapshot of this cycle. It
// costs nothing as long as no member is missing. Only the goroutine that schedules
// may call it.
func (t *Tracker) refresh() {
	defer t.claims.Wake()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.claims.Replace(claims.Replacement, t.derive())
}

// derive returns the claims. The lock is held.
func (t *Tracker) derive() (all []claims.Claim) {
	v, first := t.view(), !t.begun
	if first {
		t.begun = true
		t.enterAll(v)
	}
	absent := map[types.NamespacedName][]*slot{}
	leaving := map[types.NamespacedName]int{}
	for node := range t.suspects() {
		info, err := v.snapshot.NodeInfos().Get(node)
		if err != nil {
			continue // the node is gone, and with it what could be claimed
		}
		t.inspect(node, info, v, absent, leaving)
	}
	if first {
		t.infer(v, absent, leaving)
	}
	claimed := map[string]claims.Amounts{}
	groups := slices.SortedFunc(maps.Keys(absent), func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	for _, group := range groups {
		slots := absent[group]
		if v.over(group, slots) && leaving[group] == 0 {
			t.forget(slots)
			continue
		}
		lacking, priority := t.lacking(v, group)
		// Members that are leaving are not counted any more, and still have
		// their places.
		all = append(all, t.claimLast(slots, lacking-leaving[group], priority, claimed)...)
	}
	t.forgetPeaks()
	return all
}

// over reports whether nothing is left of what had a gang's slots: no member has a
// place, and the pods are gone. One that is there may turn out to be bound, when
// the API server comes back that did not answer.
func (v view) over(group types.NamespacedName, slots []*slot) bool {
	return v.placed(group) == 0 && !slices.ContainsFunc(slots, func(s *slot) bool { return v.find(s.pod) != nil })
}

// forget deletes the slots of a gang that holds nothing, and starts like any other
// if it comes back. Most such gangs have ended, and would be gone through in every
// cycle until their time is over.
func (t *Tracker) forget(slots []*slot) {
	for _, s := range slots {
		t.remove(s, endReleased)
	}
}

// lacking is how many members a gang lacks that is partly placed, and its
// priority. One of which all that have a place leave it lacks none either.
func (t *Tracker) lacking(v view, group types.NamespacedName) (n int, priority int32) {
	required, priority, ok := t.gangs.Required(group)
	placed := v.placed(group)
	if !ok || placed == 0 {
		return 0, 0
	}
	return int(required) - placed, priority
}

// suspects are the nodes to look at.
func (t *Tracker) suspects() map[string]bool {
	nodes := maps.Clone(t.stale)
	for _, slots := range t.loose {
		for _, s := range slots {
			nodes[s.node] = true
		}
	}
	return nodes
}

// inspect finds out which members of a node are there.
func (t *Tracker) inspect(node string, info fwk.NodeInfo, v view, absent map[types.NamespacedName][]*slot, leaving map[types.NamespacedName]int) {
	here := make(map[types.UID]*corev1.Pod, len(info.GetPods()))
	for _, pod := range info.GetPods() {
		here[pod.GetPod().UID] = pod.GetPod()
	}
	delete(t.stale, node)
	for uid, s := range t.places[node] {
		since, failing := t.failing[uid]
		pod, ok := here[uid]
		switch {
		case ok && pod.DeletionTimestamp != nil:
			t.loosen(s)
			leaving[s.group]++
		case v.alive(s):
			t.occupy(s)
		case ok: // not bound yet, or the engine is about to hear of its death
			t.stale[node] = true
		default:
			if !failing {
				since = t.clock.Now()
			}
			t.lose(s, since)
			absent[s.group] = append(absent[s.group], s)
		}
	}
}

// claimLast claims the places of the members that were lost last, as many as the
// gang lacks, and no more for its namespace than that once had, nor more than it may
// have at a time.
func (t *Tracker) claimLast(slots []*slot, lacking int, priority int32, claimed map[string]claims.Amounts) (all []claims.Claim) {
	slices.SortFunc(slots, func(a, b *slot) int {
		return cmp.Or(b.lost.Compare(a.lost), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	for _, s := range slots {
		if lacking <= 0 || s.given || !t.until(s).After(t.clock.Now()) {
			t.end(s, endReleased)
			continue
		}
		namespace := s.group.Namespace
		sum := claimed[namespace].Plus(s.requests, 1)
		if !sum.Within(t.usages[namespace].peak) || sum[corev1.ResourcePods] > t.argsOf(s).MaxPerNamespace {
			t.end(s, endCapped)
			continue
		}
		claimed[namespace] = sum
		lacking--
		t.begin(s)
		t.required[s.group], _, _ = t.gangs.Required(s.group)
		all = append(all, t.claim(s, priority)) // written for what is claimed only: places of gangs that have ended are looked at until their time is over
	}
	return all
}
