package preemption

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
)

// room is what is being cleared for a gang or a pod. Until that is placed, nobody
// else of the same or a lower priority may use it.
type room struct {
	key      types.NamespacedName
	priority int32
	pods     []*corev1.Pod             // for whom it is
	seats    map[string][]fwk.PodInfo  // by node; not changed
	victims  map[types.UID]*corev1.Pod // who still are there
	jobs     map[types.UID]bool        // that are suspended for it
	units    []Unit                    // to be evicted
	text     string                    // what is said of it
	timeout  time.Duration             // for victims to go after their grace
	since    time.Time                 // it was decided on
	cleared  time.Time                 // all victims were gone; zero before
	turned   map[string]*corev1.Pod    // who were turned away
}

// singlePrefix makes keys of pods on their own. It is no dialect.
const singlePrefix = "pod:"

// keyOf is the name of the gang of a pod, or of the pod if it has none.
func keyOf(pod *corev1.Pod) types.NamespacedName {
	if group, ok := engine.GroupOf(pod); ok {
		return group
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: singlePrefix + pod.Name}
}

func isSingle(key types.NamespacedName) bool { return strings.HasPrefix(key.Name, singlePrefix) }

// display reads like: gang research/llama.
func display(key types.NamespacedName) string {
	if name, ok := strings.CutPrefix(key.Name, singlePrefix); ok {
		return "pod " + key.Namespace + "/" + name
	}
	if k, err := gang.ParseVirtualName(key.Namespace, key.Name); err == nil {
		return "gang " + k.Namespace + "/" + k.Name
	}
	return "gang " + key.String()
}

// view is a room as a scheduling cycle sees it; it does not change.
type view struct {
	key     types.NamespacedName
	seats   map[string][]fwk.PodInfo
	victims map[types.UID]*corev1.Pod
}

// views are all that a pod has to heed.
type views []view

// Clone implements fwk.StateData.
func (v views) Clone() fwk.StateData { return v }

// against are the rooms of others that a pod has to keep off.
func (p *Preemptor) against(pod *corev1.Pod) (out views) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rooms) == 0 {
		return nil
	}
	key, priority := keyOf(pod), corev1helpers.PodPriority(pod)
	for _, name := range p.names() {
		if r := p.rooms[name]; name != key && priority <= r.priority {
			out = append(out, view{key: name, seats: r.seats, victims: maps.Clone(r.victims)})
		}
	}
	return out
}

// names are the keys of the rooms, in an order. The lock must be held.
func (p *Preemptor) names() []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(p.rooms), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
}

// admits tells whether a pod leaves enough of a node: without those who leave,
// and with those who come.
func (v view) admits(logger klog.Logger, pod *corev1.Pod, node fwk.NodeInfo) (bool, error) {
	seats := v.seats[node.Node().Name]
	if len(seats) == 0 {
		return true, nil
	}
	then := node.Snapshot()
	for _, info := range node.GetPods() {
		if v.victims[info.GetPod().UID] != nil {
			if err := then.RemovePod(logger, info.GetPod()); err != nil {
				return false, fmt.Errorf("take pod %s/%s off its node: %w", info.GetPod().Namespace, info.GetPod().Name, err)
			}
		}
	}
	for _, info := range seats {
		then.AddPodInfo(info)
	}
	return fits(pod, then), nil
}

func fits(pod *corev1.Pod, node fwk.NodeInfo) bool {
	return len(noderesources.Fits(pod, node, nil, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})) == 0 && nodeports.Fits(pod, node)
}

// KeptFrom implements plan.Claims. All members of a gang have one priority.
func (p *Preemptor) KeptFrom(group types.NamespacedName, members []*corev1.Pod) []planner.Claim {
	if len(members) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var claims []planner.Claim
	for _, name := range p.names() {
		r := p.rooms[name]
		if name == group || corev1helpers.PodPriority(members[0]) > r.priority {
			continue
		}
		for _, node := range slices.Sorted(maps.Keys(r.seats)) {
			if pod := r.kept(node); pod != nil {
				claims = append(claims, planner.Claim{Node: node, Pod: pod, For: name, Why: "being cleared for " + display(name)})
			}
		}
	}
	return claims
}

// Promised is the room that is being made for others whom a pod of a gang must not
// get in the way of: the pods that leave, and those that come instead, on their
// nodes.
func (p *Preemptor) Promised(group types.NamespacedName, pod *corev1.Pod) (leave []types.UID, come []*corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.names() {
		r := p.rooms[name]
		if name == group || corev1helpers.PodPriority(pod) > r.priority {
			continue
		}
		leave = append(leave, slices.Sorted(maps.Keys(r.victims))...)
		for _, node := range slices.Sorted(maps.Keys(r.seats)) {
			for _, info := range r.seats[node] {
				comes := info.GetPod().DeepCopy()
				comes.Spec.NodeName = node
				come = append(come, comes)
			}
		}
	}
	return leave, come
}

// kept is a pod that asks for what those who come to a node need beyond what
// those use who leave it; nil for nothing.
func (r *room) kept(node string) *corev1.Pod {
	sum := corev1.ResourceList{}
	for _, info := range r.seats[node] {
		for name, q := range placement.Request(info.GetPod()) {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
	}
	for _, pod := range r.victims {
		if pod.Spec.NodeName != node {
			continue
		}
		asked := placement.Request(pod)
		for name := range sum {
			rest := sum[name]
			if rest.Sub(asked[name]); rest.Sign() < 0 {
				rest = resource.Quantity{}
			}
			sum[name] = rest
		}
	}
	for name, q := range sum {
		if q.IsZero() {
			delete(sum, name)
		}
	}
	if len(sum) == 0 {
		return nil
	}
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "kept", Resources: corev1.ResourceRequirements{Requests: sum}}}}}
}

// KeptFor implements plan.Claims.
func (p *Preemptor) KeptFor(group types.NamespacedName) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.rooms[group]; r != nil {
		return slices.Sorted(maps.Keys(r.seats))
	}
	return nil
}

// Outlook says what is being done for a gang; empty for nothing. It stays the
// same while that goes on.
func (p *Preemptor) Outlook(group types.NamespacedName) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.rooms[group]; r != nil {
		return r.text
	}
	return ""
}

// Keeps tells whether a job stays suspended for room that is not used yet.
func (p *Preemptor) Keeps(job types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.rooms {
		if r.jobs[job] {
			return true
		}
	}
	return false
}
