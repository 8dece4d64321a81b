package advice

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// maxMoves is how many sets of pods are tried.
const maxMoves = 16

// mover searches for pods of others that could run elsewhere.
type mover struct{ *search }

// move offers to evict a few pods that find a place elsewhere, so that what they leave is enough.
func (s mover) move() {
	if s.base.Placement == nil || s.base.Placement.Fits() {
		return
	}
	lack := s.lacking()
	if len(lack) == 0 {
		return
	}
	options := map[string][]clearing{}
	most := 0
	for _, role := range lack {
		options[role.Name] = s.clearings(role)
		most = max(most, len(options[role.Name]))
	}
	for from := range min(maxMoves, most) {
		pods := pick(lack, options, from)
		if s.spent() || len(pods) == 0 || len(pods) > maxMoved || !s.permitted(pods) {
			continue
		}
		if s.offerMove(pods) {
			return
		}
	}
}

// lacking are the roles of which members find no place, each with how many.
func (s mover) lacking() []placement.Role {
	place := s.base.Placement
	var all []placement.Role
	for _, r := range s.base.Request.Roles {
		want := r.Count
		if len(s.base.Request.Roles) == 1 {
			want = min(want, s.base.Request.MinMember-int32(len(s.base.Request.Bound)))
		}
		if r.Count = want - place.Placed[r.Name]; r.Count > 0 {
			all = append(all, r)
		}
	}
	return all
}

// pick takes, for each member that lacks a place, the next node that can be cleared, beginning somewhere in the list.
func pick(lack []placement.Role, options map[string][]clearing, from int) []*corev1.Pod {
	used := map[string]bool{}
	var pods []*corev1.Pod
	for _, role := range lack {
		need := role.Count
		list := options[role.Name]
		for _, c := range list[min(from, len(list)):] {
			if need == 0 {
				break
			}
			if !used[c.node] {
				used[c.node] = true
				pods = append(pods, c.pods...)
				need--
			}
		}
		if need > 0 {
			return nil
		}
	}
	return pods
}

// offerMove adds the eviction of pods, less those that need not move, if the gang starts and all of them have a place again.
func (s mover) offerMove(pods []*corev1.Pod) bool {
	enough := func(pods []*corev1.Pod) bool {
		return s.room(s.cluster().Without(placement.PodIDs(pods)...), s.base.Request.Gang)
	}
	if !enough(pods) {
		return false
	}
	pods = least(pods, enough)
	without := s.cluster().Without(placement.PodIDs(pods)...)
	ours := s.placed(without, s.base.Request.Gang)
	if !ours.Fits() {
		return false
	}
	kept := nodesOfPlacement(ours)
	to := s.elsewhere(without, pods, kept)
	if to == nil {
		return false
	}
	return s.offer(s.moving(pods, to, kept))
}

// elsewhere places the pods on nodes other than those that are kept for the gang; nil if there is no room. That is how it
// will be: they look for a place while these nodes are cordoned.
func (s mover) elsewhere(cluster *placement.Cluster, pods []*corev1.Pod, kept []string) map[*corev1.Pod]string {
	closed := cluster.MapNodes(func(n *corev1.Node) *corev1.Node {
		if !slices.Contains(kept, n.Name) || n.Spec.Unschedulable {
			return n
		}
		n = n.DeepCopy()
		n.Spec.Unschedulable = true
		return n
	})
	var request placement.Gang
	for i, p := range pods {
		again := p.DeepCopy()
		again.Spec.NodeName, again.UID = "", ""
		again.Name += "-again"
		request.Roles = append(request.Roles, placement.Role{Name: fmt.Sprint(i), Pod: again, Count: 1})
	}
	r := s.placed(closed, request)
	if !r.Fits() {
		return nil
	}
	to := map[*corev1.Pod]string{}
	for _, a := range r.Placement {
		var i int
		if _, err := fmt.Sscan(a.Role, &i); err == nil {
			to[pods[i]] = a.Node
		}
	}
	return to
}

// nodesOfPlacement are the nodes of a placement, sorted.
func nodesOfPlacement(r *placement.Result) []string {
	var nodes []string
	for _, a := range r.Placement {
		nodes = append(nodes, a.Node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// moving is the action: the gang's nodes are closed while the pods look for another place.
func (s mover) moving(pods []*corev1.Pod, to map[*corev1.Pod]string, kept []string) stage.Fix {
	kept = slices.DeleteFunc(kept, func(name string) bool { return s.w.Cluster().Node(name).Spec.Unschedulable })
	var names, from, dest, texts []string
	var evictions, waits, again []string
	lose := map[*view.Consumer]int64{}
	for _, p := range pods {
		h := s.w.ConsumerOf(p)
		lose[h]++
		name := s.reader.Name(audience.New("pod", p.Namespace, p.Name).Sized(podrequest.Of(p), h.Priority()))
		names = append(names, name)
		from, dest = append(from, p.Spec.NodeName), append(dest, to[p])
		texts = append(texts, fmt.Sprintf("%s from %s to %s", name, p.Spec.NodeName, to[p]))
		evictions = append(evictions, command.Evict(p.Namespace, p.Name))
		waits = append(waits, command.Kubectl(p.Namespace, "wait", "--for=delete", "pod/"+p.Name, "--timeout=10m"))
		switch {
		case h.Job != nil:
			again = append(again, command.Kubectl(p.Namespace, "wait", "--for=condition=PodScheduled", "pod", "-l", h.Job.PodSelector(h.Pods), "--timeout=10m"))
		case h.Kind != "ReplicaSet":
			again = append(again, command.Kubectl(p.Namespace, "rollout", "status", service(h), "--timeout=10m"))
		}
	}
	slices.Sort(again)
	waits = append(waits, slices.Compact(again)...)
	var losers []string
	for h, n := range lose {
		if h.Job != nil {
			losers = append(losers, s.naming().Name(h)+" starts again from its last checkpoint")
			continue
		}
		losers = append(losers, fmt.Sprintf("%s starts %s again", s.naming().Name(h), phrase.Count(n, "pod")))
	}
	slices.Sort(losers)
	commands := append(evictions, waits...)
	if len(kept) > 0 {
		commands = append(append([]string{command.Kubectl("", append([]string{"cordon"}, kept...)...)}, commands...), command.Kubectl("", append([]string{"uncordon"}, kept...)...))
	}
	return stage.Fix{
		Action: answer.Action{Kind: answer.Move, By: answer.Admin, Text: "move " + phrase.Names(texts), Cost: phrase.Names(losers), Nodes: kept,
			Change:  map[string]any{"pods": names, "from": from, "to": dest},
			Command: command.Then(commands...)},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Moved(snap, to) },
	}
}
