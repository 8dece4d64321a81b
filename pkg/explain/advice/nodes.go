package advice

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/ladder"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/whatif"
	"github.com/gangctl/gangctl/pkg/fit"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// uncordon offers the smallest set of cordoned nodes that has to be opened.
func (s *search) uncordon() {
	var names []string
	for _, n := range s.w.Cluster().Nodes() {
		if fit.Uncordoned(n) != n {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	fix := func(names []string) ladder.Fix {
		return ladder.Fix{
			Action: answer.Action{Kind: answer.Uncordon, By: answer.Admin, Text: "uncordon " + phrase.Names(names), Change: map[string]any{"nodes": names}, Nodes: names,
				Command: command.Kubectl("", append([]string{"uncordon"}, names...)...)},
			Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Nodes(snap, func(n *corev1.Node) *corev1.Node {
					if slices.Contains(names, n.Name) {
						return fit.Uncordoned(n)
					}
					return n
				})
			},
		}
	}
	starts := func(names []string) bool {
		_, ok := s.try(fix(names).Apply)
		return ok
	}
	if !starts(names) {
		return
	}
	for i := len(names) - 1; i >= 0 && len(names) > 1; i-- {
		if rest := slices.Delete(slices.Clone(names), i, i+1); starts(rest) {
			names = rest
		}
	}
	s.offer(fix(names))
}

// maxNew is how many nodes are added at most.
const maxNew = 256

// addNodes offers the fewest more nodes of each shape that exists. Shapes that do not help are left out, and of those that
// do only the smallest number is offered.
func (s *search) addNodes() {
	var best []ladder.Fix
	fewest := int64(maxNew + 1)
	for _, model := range s.shapes() {
		n, ok := smallest(1, min(int64(s.g.Total()), fewest), func(n int64) bool {
			_, starts := s.try(s.more(model, n).Apply)
			return starts
		})
		if !ok || n > fewest {
			continue
		}
		if n < fewest {
			best, fewest = nil, n
		}
		best = append(best, s.more(model, n))
	}
	for _, fix := range best {
		s.offer(fix)
	}
}

// smallest is the smallest value for which a monotone test is true.
func smallest(lo, hi int64, test func(int64) bool) (int64, bool) {
	if lo > hi || !test(hi) {
		return 0, false
	}
	for lo < hi {
		mid := lo + (hi-lo)/2
		if test(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo, true
}

// shapes are one node of each kind that members may use: the first by name, well and open.
func (s *search) shapes() []*corev1.Node {
	seen := map[string]bool{}
	var all []*corev1.Node
	for _, n := range s.w.Cluster().Nodes() {
		n = fit.AtCapacity(fit.Repaired(fit.Uncordoned(n)))
		labels := map[string]string{}
		for key, value := range n.Labels {
			if key != corev1.LabelHostname {
				labels[key] = value
			}
		}
		text, err := json.Marshal([]any{n.Status.Allocatable, labels, n.Spec.Taints})
		if err != nil || seen[string(text)] {
			continue
		}
		seen[string(text)] = true
		all = append(all, n)
	}
	return all
}

func (s *search) more(model *corev1.Node, count int64) ladder.Fix {
	var daemons []*corev1.Pod
	for _, p := range s.w.Cluster().PodsOn(model.Name) {
		if fit.DaemonSetPod(p) {
			daemons = append(daemons, p)
		}
	}
	return ladder.Fix{
		Action: answer.Action{Kind: answer.AddNodes, By: answer.Admin, Text: fmt.Sprintf("add %s like %s (%s)", phrase.Count(count, "node"), model.Name, size(model)),
			Change: map[string]any{"count": count, "like": model.Name}},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.MoreNodes(snap, model, daemons, int(count))
		},
	}
}

// size is what a node has, in a word.
func size(n *corev1.Node) string {
	name := phrase.Device(n.Status.Allocatable)
	if name == "" {
		name = corev1.ResourceCPU
	}
	return phrase.Amount(name, fit.Amount(name, n.Status.Allocatable[name]))
}
