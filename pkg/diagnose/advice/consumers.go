package advice

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
)

// otherConsumers are the consumers that are not this gang.
func (s *search) otherConsumers(match func(*view.Consumer) bool) []*view.Consumer {
	var all []*view.Consumer
	own := map[*corev1.Pod]bool{}
	for _, m := range s.g.Members {
		own[m.Pod] = true
	}
	for _, h := range s.w.Consumers() {
		if !h.DaemonSet && !own[h.Pods[0]] && (h.Job == nil || h.Job.Meta.UID != s.g.Meta.UID) && match(h) {
			all = append(all, h)
		}
	}
	return all
}

// gone is the cluster after consumers are gone as a whole.
func (s *search) gone(snap *snapshot.Snapshot, set []*view.Consumer) *snapshot.Snapshot {
	pods, owners := stage.PodsAndOwners(set)
	if snap != s.w.Snap {
		return whatif.Gone(snap, pods, owners...)
	}
	if s.owned == nil {
		s.owned = whatif.NewOwned(snap)
	}
	return s.owned.Gone(snap, pods, owners...)
}

// relevant leaves out consumers whose end frees nothing that the gang could use: they use nothing of what is short on nodes
// that it may use, and no queue or quota is among the reasons.
func (s *search) relevant(all []*view.Consumer) []*view.Consumer {
	if s.rationed() || len(s.base.Matrices) == 0 {
		return all
	}
	usable := map[string]bool{}
	short := map[corev1.ResourceName]bool{}
	other := false
	for _, m := range s.base.Matrices {
		for _, row := range m.Rows {
			usable[row.Node] = usable[row.Node] || row.Usable()
			for _, v := range row.Violations {
				if v.Resource != "" {
					short[v.Resource] = true
				} else if !v.Constraint.Static() {
					other = true // a rule about other pods: any of them may matter
				}
			}
		}
	}
	for _, f := range s.base.Findings() {
		if name, ok := f.Facts["resource"].(string); ok {
			short[corev1.ResourceName(name)] = true // short for all members together, while one alone may fit
		}
	}
	other = other || short[corev1.ResourcePods]
	return slices.DeleteFunc(slices.Clone(all), func(h *view.Consumer) bool {
		return !slices.ContainsFunc(h.Pods, func(p *corev1.Pod) bool {
			return usable[cmp.Or(p.Spec.NodeName, p.Status.NominatedNodeName)] && (other || requestsAny(p, short))
		})
	})
}

// requestsAny reports whether a pod requests any of some resources.
func requestsAny(p *corev1.Pod, names map[corev1.ResourceName]bool) bool {
	has := func(list corev1.ResourceList) bool {
		for name, q := range list {
			if names[name] && !q.IsZero() {
				return true
			}
		}
		return false
	}
	some := func(containers []corev1.Container) bool {
		for i := range containers { // a container is large, and a cluster has many
			if has(containers[i].Resources.Requests) {
				return true
			}
		}
		return false
	}
	return has(p.Spec.Overhead) || some(p.Spec.InitContainers) || some(p.Spec.Containers)
}

// soonest puts first what has a known end, the earliest first; and then what shares its node with the fewest others, so that
// a few ends empty whole nodes.
func soonest(all []*view.Consumer) []*view.Consumer {
	onNode := map[string]int{}
	for _, h := range all {
		for node := range nodesOf(h) {
			onNode[node]++
		}
	}
	best := map[*view.Consumer]string{}
	for _, h := range all {
		for node := range nodesOf(h) {
			if b := best[h]; b == "" || onNode[node] < onNode[b] || onNode[node] == onNode[b] && node < b {
				best[h] = node
			}
		}
	}
	slices.SortFunc(all, func(a, b *view.Consumer) int {
		return cmp.Or(compareEnd(a, b), cmp.Compare(onNode[best[a]], onNode[best[b]]), cmp.Compare(best[a], best[b]), strings.Compare(a.String(), b.String()))
	})
	return all
}

func nodesOf(h *view.Consumer) map[string]bool {
	nodes := map[string]bool{}
	for _, p := range h.Pods {
		if p.Spec.NodeName != "" {
			nodes[p.Spec.NodeName] = true
		}
	}
	return nodes
}

// compareEnd puts known ends first, the earliest before all.
func compareEnd(a, b *view.Consumer) int {
	if a.Deadline.IsZero() != b.Deadline.IsZero() {
		if a.Deadline.IsZero() {
			return 1
		}
		return -1
	}
	return a.Deadline.Compare(b.Deadline)
}

// rationed reports whether a quota or a queue is among the reasons.
func (s *search) rationed() bool {
	return slices.ContainsFunc(s.base.Findings(), func(f stage.Finding) bool {
		return f.Stage == answer.StageQueue || f.Stage == answer.StagePods || f.Code == answer.QueueOrder
	})
}
