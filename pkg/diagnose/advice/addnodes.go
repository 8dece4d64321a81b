package advice

import (
	"encoding/json"
	"fmt"
	"maps"
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
// do only the smallest number is offered, once for those that look alike to whoever adds them. Nobody adds nodes with devices for members that request none, where others do.
func (s nodeAdder) addNodes() {
	shapes := s.shapes()
	plain := slices.DeleteFunc(slices.Clone(shapes), s.idlesOn)
	best := s.fewest(plain)
	if len(best) == 0 && len(plain) < len(shapes) {
		best = s.fewest(slices.DeleteFunc(shapes, func(n *corev1.Node) bool { return !s.idlesOn(n) }))
	}
	for _, a := range best {
		s.offer(s.more(a))
	}
}

// idlesOn reports whether a node has devices that no member requests.
func (s nodeAdder) idlesOn(n *corev1.Node) bool {
	device := podrequest.Device(n.Status.Allocatable)
	return device != "" && !slices.ContainsFunc(s.base.Request.Roles, func(r placement.Role) bool { return podrequest.OfResource(r.Pod, device) > 0 })
}

// addition is so many nodes like one.
type addition struct {
	model *corev1.Node
	count int64
}

// fewest are the fewest more nodes that help, of each of the shapes of which no more are needed.
func (s nodeAdder) fewest(shapes []*corev1.Node) (best []addition) {
	var offered map[string]bool
	fewest := int64(maxNew)
	for _, model := range shapes {
		n, ok := smallest(1, min(int64(s.g.Total()), fewest), func(n int64) bool { return s.helps(addition{model, n}) })
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
		if best = append(best, addition{model, n}); len(best) == maxSets && n == 1 {
			break
		}
	}
	return best[:min(maxSets, len(best))]
}

// helps reports whether there is room with more nodes.
func (s nodeAdder) helps(a addition) bool {
	nodes, daemons := whatif.NewNodes(a.model, whatif.Daemons(s.w.Cluster(), a.model.Name), int(a.count))
	return s.room(s.cluster().WithNodes(nodes...).With(daemons...), s.base.Request.Gang)
}

// maxLabels is how many labels of a model are looked at to find those that decide.
const maxLabels = 16

// deciding are the labels that new nodes have to have, besides those of their pool: with another value of it, or without it, they do not help.
func (s nodeAdder) deciding(a addition) map[string]string {
	labels := map[string]string{}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(s.nodeLabelKeys())), func(key string) bool { return a.model.Labels[key] == "" })
	for _, key := range keys[:min(maxLabels, len(keys))] {
		if !s.helps(addition{s.otherwise(a.model, key), a.count}) && !s.spent() {
			labels[key] = a.model.Labels[key]
		}
	}
	for _, key := range s.base.Request.Topology.AllRequired() { // members share a domain, and new nodes may be one of their own
		if value := a.model.Labels[key]; value != "" && key != corev1.LabelHostname {
			labels[key] = value
		}
	}
	return labels
}

// otherwise is a model with another value of a label, that of some other node, or without it where all have the same.
func (s nodeAdder) otherwise(model *corev1.Node, key string) *corev1.Node {
	other := model.DeepCopy()
	delete(other.Labels, key)
	for _, n := range s.w.Cluster().Nodes() {
		if value := n.Labels[key]; value != "" && value != model.Labels[key] {
			other.Labels[key] = value
			break
		}
	}
	return other
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
			for _, key := range s.w.Cluster().VolumeLabelKeys(r.Pod) {
				keys[key] = true
			}
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

// more is that nodes are added.
func (s nodeAdder) more(a addition) stage.Fix {
	model, count := a.model, a.count
	how := "whoever runs the cluster adds " + phrase.Verb(int(count), "it", "them")
	change := map[string]any{"count": count, "like": model.Name}
	var with []string
	if pool := node.PoolOf(model); pool != "" {
		with = append(with, pool)
	}
	if labels := s.deciding(a); len(labels) > 0 {
		change["labels"] = labels
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			if label := key + "=" + labels[key]; !slices.Contains(with, label) {
				with = append(with, label)
			}
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
			Change: change, How: how, Command: raise},
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
