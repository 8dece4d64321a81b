package advice

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/node"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

const (
	// maxNew is how many nodes are added at most.
	maxNew = 256
	// maxShapes is how many kinds of node are tried.
	maxShapes = 32
)

// nodeAdder searches for nodes that would have to be added.
type nodeAdder struct{ *search }

// addNodes offers the fewest more nodes of each shape that exists. Shapes that do not help are left out, and of those that
// do only the smallest number is offered, once for those that look alike to whoever adds them.
func (s nodeAdder) addNodes() {
	var best []stage.Fix
	var offered map[string]bool
	fewest := int64(maxNew)
	for _, model := range s.shapes() {
		n, ok := smallest(1, min(int64(s.g.Total()), fewest), func(n int64) bool {
			nodes, daemons := whatif.NewNodes(model, whatif.Daemons(s.w.Cluster(), model.Name), int(n))
			return s.room(s.cluster().WithNodes(nodes...).With(daemons...), s.base.Request.Gang)
		})
		if !ok || s.spent() {
			continue
		}
		if n < fewest {
			best, offered, fewest = nil, map[string]bool{}, n
		}
		alike := size(model) + node.PoolOf(model)
		if offered[alike] {
			continue
		}
		offered[alike] = true
		if best = append(best, s.more(model, n)); len(best) == maxSets && n == 1 {
			break
		}
	}
	for _, fix := range best[:min(maxSets, len(best))] {
		s.offer(fix)
	}
}

// shapes are one node of each kind that members can distinguish: the first by name, ready and schedulable.
func (s nodeAdder) shapes() []*corev1.Node {
	keys := s.nodeLabelKeys()
	seen := map[string]bool{}
	var all []*corev1.Node
	broken := s.unplugged()
	for _, n := range s.w.Cluster().Nodes() {
		if broken.Has(n.Name) {
			continue
		}
		n = placement.AtCapacity(placement.Repaired(placement.Uncordoned(n)))
		labels := map[string]string{}
		for key, value := range n.Labels {
			if keys[key] {
				labels[key] = value
			}
		}
		text, err := json.Marshal([]any{n.Status.Allocatable, labels, append([]corev1.Taint{}, n.Spec.Taints...)}) // none are none, nil or not
		if err != nil || seen[string(text)] {
			continue
		}
		seen[string(text)] = true
		if all = append(all, n); len(all) == maxShapes {
			s.partial = true
			break
		}
	}
	return all
}

// unplugged are nodes that do not advertise devices that they look like they have: why a new one like them should is not known.
func (s nodeAdder) unplugged() sets.Set[string] {
	names := sets.New[string]()
	for _, f := range s.base.Findings() {
		if f.Code == answer.NoDevicePlugin {
			of, _ := f.Facts["nodes"].([]string)
			names.Insert(of...)
		}
	}
	return names
}

// nodeLabelKeys are the labels by which members choose nodes, less the hostname, which is each node's own.
func (s nodeAdder) nodeLabelKeys() map[string]bool {
	keys := map[string]bool{}
	for _, key := range s.base.Request.Topology.AllRequired() {
		keys[key] = true
	}
	terms := func(list []corev1.PodAffinityTerm) {
		for _, t := range list {
			keys[t.TopologyKey] = true
		}
	}
	for _, r := range s.base.Request.Roles {
		spec := r.Pod.Spec
		for key := range spec.NodeSelector {
			keys[key] = true
		}
		for _, t := range spec.TopologySpreadConstraints {
			keys[t.TopologyKey] = true
		}
		if len(spec.Volumes) > 0 {
			keys[corev1.LabelTopologyZone], keys[corev1.LabelTopologyRegion] = true, true
		}
		a := spec.Affinity
		if a == nil {
			continue
		}
		if a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				for _, e := range t.MatchExpressions {
					keys[e.Key] = true
				}
			}
		}
		if a.PodAffinity != nil {
			terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAntiAffinity != nil {
			terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
	}
	delete(keys, corev1.LabelHostname)
	return keys
}

func (s nodeAdder) more(model *corev1.Node, count int64) stage.Fix {
	how := "whoever runs the cluster adds " + map[bool]string{true: "it", false: "them"}[count == 1]
	var with []string
	if pool := node.PoolOf(model); pool != "" {
		with = append(with, pool)
	}
	for _, key := range s.base.Request.Topology.AllRequired() {
		value := model.Labels[key]
		if label := key + "=" + value; value != "" && key != corev1.LabelHostname && !slices.Contains(with, label) {
			with = append(with, label)
		}
	}
	if len(with) > 0 {
		how += ", with " + phrase.And(with)
	}
	raise := ""
	if pool := s.w.NodePoolOf(model); pool != nil {
		if limits := pool.Exceeded(model, count); len(limits) > 0 {
			raise = command.MergePatch("", "nodepool", pool.GetName(), map[string]any{"spec": map[string]any{"limits": limits}})
			how = "Karpenter adds " + phrase.Verb(int(count), "it", "them") + " once NodePool " + pool.GetName() + " may have more"
		}
	}
	return stage.Fix{
		Action: answer.Action{Kind: answer.AddNodes, By: answer.Admin, Text: fmt.Sprintf("add %s like %s (%s)", phrase.Count(count, "node"), model.Name, size(model)),
			Change: map[string]any{"count": count, "like": model.Name}, How: how, Command: raise},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.MoreNodes(snap, model, whatif.Daemons(s.w.Cluster(), model.Name), int(count))
		},
	}
}

// size is a node's capacity in short: GPUs, or cpu.
func size(n *corev1.Node) string {
	name := podrequest.Device(n.Status.Allocatable)
	if name == "" {
		name = corev1.ResourceCPU
	}
	return phrase.Amount(name, podrequest.Amount(name, n.Status.Allocatable[name]))
}
