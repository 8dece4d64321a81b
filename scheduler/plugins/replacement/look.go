package replacement

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// view is what a scheduling cycle sees.
type view struct {
	snapshot fwk.SharedLister
	// pods are the informer's, which is never behind the snapshot.
	pods corelisters.PodLister
}

// placed counts the members of a gang that have a place and do not leave it.
func (v view) placed(group types.NamespacedName) int {
	state, err := v.snapshot.PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return 0
	}
	return state.ScheduledPodsCount()
}

// alive tells whether the pod of a slot has its node, whatever the snapshot
// says: one that was bound a moment ago is not in it yet.
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

// Held derives what is held from the ledger and the snapshot of this cycle. It
// costs nothing as long as nobody dies. Only the goroutine that schedules may
// call it.
func (l *Ledger) Held() Holds {
	l.mu.Lock()
	holds, released := l.look()
	wake := func() {}
	if released {
		wake = l.wakeable()
	}
	l.mu.Unlock()
	wake()
	return holds
}

// look does that, and reports whether less is held than before. The lock is held.
func (l *Ledger) look() (holds Holds, released bool) {
	v := l.view
	if v.snapshot == nil {
		return nil, false // no profile has the plugin
	}
	first := !l.begun
	if first {
		l.begun = true
		l.enterAll(v)
	}
	absent := map[types.NamespacedName][]*slot{}
	leaving := map[types.NamespacedName]int{}
	for node := range l.suspects() {
		info, err := v.snapshot.NodeInfos().Get(node)
		if err != nil {
			continue // the node is gone, and with it what could be held
		}
		l.inspect(node, info, v, absent, leaving)
	}
	if first {
		l.infer(v, absent, leaving)
	}
	holds = Holds{}
	for group, slots := range absent {
		lacking, priority := l.lacking(v, group)
		// Members that are leaving are not counted any more, and still have
		// their places.
		released = l.hold(holds, slots, lacking-leaving[group], priority) || released
	}
	if len(holds) == 0 {
		return nil, released
	}
	return holds, released
}

// lacking is how many members a gang lacks that is partly placed, and its
// priority. A gang of which nobody has a place lacks none: it holds nothing, and
// starts like any other.
func (l *Ledger) lacking(v view, group types.NamespacedName) (n int, priority int32) {
	need, priority, ok := l.gangs.Standing(group)
	placed := v.placed(group)
	if !ok || placed == 0 {
		return 0, 0
	}
	return int(need) - placed, priority
}

// suspects are the nodes to look at.
func (l *Ledger) suspects() map[string]bool {
	nodes := maps.Clone(l.stale)
	for _, slots := range l.loose {
		for _, s := range slots {
			nodes[s.node] = true
		}
	}
	return nodes
}

// inspect finds out which members of a node are there.
func (l *Ledger) inspect(node string, info fwk.NodeInfo, v view, absent map[types.NamespacedName][]*slot, leaving map[types.NamespacedName]int) {
	here := make(map[types.UID]*corev1.Pod, len(info.GetPods()))
	for _, pod := range info.GetPods() {
		here[pod.GetPod().UID] = pod.GetPod()
	}
	delete(l.stale, node)
	for uid, s := range l.places[node] {
		since, failing := l.failing[uid]
		pod, ok := here[uid]
		switch {
		case ok && pod.DeletionTimestamp != nil:
			l.loosen(s)
			leaving[s.group]++
		case v.alive(s):
			l.settle(s)
		case ok: // not bound yet, or the engine is about to hear of its death
			l.stale[node] = true
		default:
			if !failing {
				since = l.clock.Now()
			}
			l.lose(s, since)
			absent[s.group] = append(absent[s.group], s)
		}
	}
}

// hold adds the places of the members that were lost last, as many as the gang
// lacks. It reports whether any of them was held before, and is not now.
func (l *Ledger) hold(holds Holds, slots []*slot, lacking int, priority int32) (released bool) {
	slices.SortFunc(slots, func(a, b *slot) int {
		return cmp.Or(b.lost.Compare(a.lost), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	for _, s := range slots {
		until := s.lost.Add(l.ttlOf(s))
		if lacking <= 0 || s.given || !until.After(l.clock.Now()) {
			released = released || s.held
			l.ended(s, endReleased)
			continue
		}
		lacking--
		info, err := framework.NewPodInfo(s.pod)
		if err != nil {
			continue // it has been placed once, so this cannot be; and nothing is lost
		}
		info.CalculateResource() // now, because several goroutines will read it
		l.began(s)
		l.needs[s.group], _, _ = l.gangs.Standing(s.group)
		holds[s.node] = append(holds[s.node], Hold{
			Group: s.group, Member: s.name, Node: s.node, Until: until, Priority: priority, pod: info,
		})
	}
	return released
}
