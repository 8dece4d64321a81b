package replacement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// enterAll enters every pod that has a node, in case informers have not reported
// all of them yet. Of those that leave, some have been replaced while another
// scheduler led: only as many are entered as their gang lacks, those that were
// deleted last.
func (t *Tracker) enterAll(v view) {
	pods, err := v.pods.List(labels.Everything())
	if err != nil {
		return // a lister that reads memory does not fail
	}
	leave := map[types.NamespacedName][]*corev1.Pod{}
	for _, pod := range pods {
		group, ok := t.gangs.GroupOf(pod)
		switch {
		case !ok || pod.Spec.NodeName == "":
		case pod.DeletionTimestamp != nil:
			leave[group] = append(leave[group], pod)
		default:
			t.enter(group, pod)
		}
	}
	for group, pods := range leave {
		slices.SortFunc(pods, func(a, b *corev1.Pod) int {
			return cmp.Or(b.DeletionTimestamp.Compare(a.DeletionTimestamp.Time), cmp.Compare(a.UID, b.UID))
		})
		lacking, _ := t.lacking(v, group)
		for i, pod := range pods {
			if i < lacking {
				t.enter(group, pod)
			} else if s := t.slots[pod.UID]; s != nil {
				t.remove(s, endReplaced)
			}
		}
	}
}

// The time to infer places is bounded for each gang, so that a large one leaves
// time for the others, and for all of them: the first cycle waits for it. Places
// that are not inferred are not reserved, and are taken in turn.
const (
	inferBudget      = 2 * time.Second
	inferBudgetAGang = 100 * time.Millisecond
)

// infer makes up for what no scheduler saw: members that died while none ran,
// and those that a scheduler had not bound yet when it ended. Of the first not
// even the node is known. But no other pod was placed meanwhile, so their places
// are free still, and for each one that is missing a place is chosen that has
// room for it now.
func (t *Tracker) infer(v view, absent map[types.NamespacedName][]*slot, leaving map[types.NamespacedName]int) {
	members := map[types.NamespacedName][]*slot{}
	for _, s := range t.slots {
		members[s.group] = append(members[s.group], s)
	}
	groups := slices.SortedFunc(maps.Keys(members), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	taken := map[string]fwk.NodeInfo{}
	start := t.clock.Now()
	for _, group := range groups {
		begun := t.clock.Now()
		if begun.Sub(start) > inferBudget {
			return
		}
		lacking, _ := t.lacking(v, group)
		for i, pod := range missing(v, group, members[group], lacking-leaving[group]-len(absent[group])) {
			if t.clock.Since(begun) > inferBudgetAGang {
				break
			}
			node := roomFor(v, pod, taken)
			if node == "" {
				continue
			}
			pod.UID = types.UID(fmt.Sprintf("missing:%s:%d", group, i))
			s := &slot{pod: pod, group: group, node: node}
			t.put(s)
			t.lose(s, t.clock.Now())
			absent[group] = append(absent[group], s)
		}
	}
}

// missing returns what n members that a gang lacks look like: as those that wait
// for a place, and for want of them as the largest that has one. A minimum may be
// any number, so places are inferred for at most as many as the gang has pods.
func missing(v view, group types.NamespacedName, placed []*slot, n int) []*corev1.Pod {
	if n <= 0 {
		return nil
	}
	var pods []*corev1.Pod
	if state, err := v.snapshot.PodGroupStates().Get(group.Namespace, group.Name); err == nil {
		waiting := state.UnscheduledPods()
		for _, key := range slices.Sorted(maps.Keys(waiting)) {
			pods = append(pods, waiting[key].DeepCopy())
		}
	}
	n = min(n, len(pods)+len(placed))
	largest := slices.MaxFunc(placed, func(a, b *slot) int { return compareSize(a.pod, b.pod) })
	for len(pods) < n {
		pod := largest.pod.DeepCopy()
		pod.Name, pod.Spec.NodeName = "", ""
		pods = append(pods, pod)
	}
	return pods[:n]
}

// compareSize puts a pod with scarcer needs last: extended resources weigh more
// than CPU and memory.
func compareSize(a, b *corev1.Pod) int {
	x, y := request.Of(a), request.Of(b)
	extended := func(list corev1.ResourceList) (sum int64) {
		for name, quantity := range list {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
				sum += quantity.Value()
			}
		}
		return sum
	}
	return cmp.Or(cmp.Compare(extended(x), extended(y)), x.Cpu().Cmp(*y.Cpu()), x.Memory().Cmp(*y.Memory()), cmp.Compare(a.UID, b.UID))
}

// roomFor finds the fullest node that a pod fits on, and adds the pod to what
// is taken there; empty if there is none.
func roomFor(v view, pod *corev1.Pod, taken map[string]fwk.NodeInfo) string {
	nodes, err := v.snapshot.NodeInfos().List()
	if err != nil {
		return ""
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return ""
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	var best fwk.NodeInfo
	var least float64
	for _, node := range nodes {
		if clone, ok := taken[node.Node().Name]; ok {
			node = clone
		}
		if match, err := affinity.Match(node.Node()); err != nil || !match || !tolerates(pod, node.Node()) || !claims.Fits(pod, node) {
			continue
		}
		if left := slack(pod, node); best == nil || left < least {
			best, least = node, left
		}
	}
	if best == nil {
		return ""
	}
	name := best.Node().Name
	if taken[name] == nil {
		taken[name] = best.Snapshot()
	}
	taken[name].AddPodInfo(info)
	return name
}

func tolerates(pod *corev1.Pod, node *corev1.Node) bool {
	_, repelled := corev1helpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, pod.Spec.Tolerations, func(t *corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	}, placement.Comparing)
	return !repelled
}

// slack is the share of what the pod requests that is free on a node, summed up.
func slack(pod *corev1.Pod, node fwk.NodeInfo) (left float64) {
	free := func(allocatable, requested int64) {
		if allocatable > 0 {
			left += float64(allocatable-requested) / float64(allocatable)
		}
	}
	for name := range request.Of(pod) {
		switch name {
		case corev1.ResourceCPU:
			free(node.GetAllocatable().GetMilliCPU(), node.GetRequested().GetMilliCPU())
		case corev1.ResourceMemory:
			free(node.GetAllocatable().GetMemory(), node.GetRequested().GetMemory())
		default:
			free(node.GetAllocatable().GetScalarResources()[name], node.GetRequested().GetScalarResources()[name])
		}
	}
	return left
}
