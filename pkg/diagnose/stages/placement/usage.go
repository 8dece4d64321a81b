package placement

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/device"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/topology"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// usage is how pods that are there have some of what a constraint is about, where it matters to the gang.
type usage struct {
	// uses reports whether a pod has some of it.
	uses func(*corev1.Pod) bool
	// clause is what some consumers have by these pods, with the verb for so many: holds 8 GPUs on n1.
	clause func(consumers int, pods []*corev1.Pod) string
}

// usages are how pods have what a constraint is about on a cluster, given the room for it; of a rule about places it is what people choose nodes by.
func usages(c *stage.Context, cluster *placement.Cluster, constraint placement.Constraint, r placement.Room) []usage {
	amount := amountOf(r.Resource, r.NodeNames())
	switch constraint {
	case placement.HostPort:
		return []usage{held(onNodesOf(r, conflictsWith(r.Role.Pod)), func([]*corev1.Pod) string { return "host port " + portNumbers(r.Role.Pod) })}
	case placement.DRADevices:
		devices := device.Allocated(c)
		return []usage{held(onNodesOf(r, func(p *corev1.Pod) bool { return devices.Of(p) > 0 }), func(pods []*corev1.Pod) string {
			sum := 0
			for _, p := range pods {
				sum += devices.Of(p)
			}
			return phrase.Count(sum, "device")
		})}
	case placement.VolumeLimits:
		return []usage{held(onNodesOf(r, placement.HasVolumes), func(pods []*corev1.Pod) string {
			sum := 0
			for _, p := range pods {
				sum += placement.CountVolumes(p)
			}
			return phrase.Count(sum, "volume")
		})}
	case placement.PodAntiAffinity:
		if placement.KeepsOwnApart(r.Role.Pod) {
			return []usage{keepsOff(cluster, r), amount}
		}
		return []usage{keepsOff(cluster, r)}
	case placement.TopologySpread:
		if s, _, ok := topology.BindingSpread(c, cluster, r.Role); ok {
			return spreadUsages(c, cluster, s, r)
		}
	}
	if _, ok := constraint.ResourceName(); !ok {
		return []usage{amount}
	}
	var all []usage
	for _, s := range shortages(c, cluster, r) {
		for _, v := range s.Short {
			all = append(all, amountOf(v.Resource, s.Nodes))
		}
	}
	if all == nil {
		return []usage{amount}
	}
	return all
}

// amountOf is the usage of a resource on some nodes.
func amountOf(name corev1.ResourceName, nodes []string) usage {
	return held(podsOn(nodes, func(p *corev1.Pod) bool { return request.OfResource(p, name) > 0 }), func(pods []*corev1.Pod) string {
		var sum int64
		for _, p := range pods {
			sum += request.OfResource(p, name)
		}
		return phrase.AmountUp(name, sum)
	})
}

// held is the usage of pods that match, on their nodes.
func held(match func(*corev1.Pod) bool, what func([]*corev1.Pod) string) usage {
	return usage{match, func(consumers int, pods []*corev1.Pod) string {
		return fmt.Sprintf("%s %s on %s", phrase.Verb(consumers, "holds", "hold"), what(pods), phrase.Names(nodesOf(pods)))
	}}
}

// keepsOff is the usage of nodes by required anti-affinity, be it that of the gang or that of the pods that are there.
func keepsOff(cluster *placement.Cluster, r placement.Room) usage {
	among, keptOff := sets.New[string](), cluster.KeptOff(r.Role.Pod)
	for _, n := range r.Nodes {
		if n.Total >= r.PerMember { // one that is too small is no loss
			among.Insert(n.Node)
		}
	}
	useful := func(d placement.Closed) bool { return slices.ContainsFunc(d.Nodes, among.Has) }
	return usage{
		uses: func(p *corev1.Pod) bool { return slices.ContainsFunc(keptOff(p), useful) },
		clause: func(consumers int, pods []*corev1.Pod) string {
			places := map[string][]string{}
			for _, p := range pods {
				for _, d := range keptOff(p) {
					place := phrase.Place(d.Key, d.Value)
					if _, known := places[place]; known || !useful(d) {
						continue
					}
					if len(d.Nodes) == 1 {
						places[d.Nodes[0]] = nil
					} else {
						places[place] = slices.DeleteFunc(slices.Clone(d.Nodes), func(name string) bool { return !among.Has(name) })
					}
				}
			}
			return fmt.Sprintf("%s %ss off %s by pod anti-affinity", phrase.Verb(consumers, "keeps", "keep"), phrase.Noun(r), phrase.NamesOf(slices.Sorted(maps.Keys(places)), func(place string) string {
				if nodes := places[place]; len(nodes) > 0 {
					return fmt.Sprintf("%s (%s)", place, phrase.Names(nodes))
				}
				return place
			}))
		},
	}
}

// spreadUsages are how pods are in the way of a spread: those that it counts are where it lets no more in, others have what is short where it would.
func spreadUsages(c *stage.Context, cluster *placement.Cluster, s placement.SpreadCount, r placement.Room) []usage {
	ahead := usage{
		uses: func(p *corev1.Pod) bool {
			d, counts := s.In(p)
			return counts && s.Full(d)
		},
		clause: func(consumers int, pods []*corev1.Pod) string {
			in := sets.New[string]()
			for _, p := range pods {
				if d, counts := s.In(p); counts {
					in.Insert(d.Value)
				}
			}
			return fmt.Sprintf("%s %s that the spread counts in %s", phrase.Verb(consumers, "has", "have"), phrase.Count(len(pods), "pod"), phrase.Names(sets.List(in)))
		},
	}
	behind := sets.New[string]()
	for _, node := range r.NodeNames() {
		if d, counts := s.Of(node); counts && !s.Full(d) {
			behind.Insert(node)
		}
	}
	short := map[corev1.ResourceName][]string{} // with the nodes of that
	for _, on := range shortFor(c, cluster, r.Role) {
		nodes := slices.DeleteFunc(slices.Clone(on.Nodes), func(node string) bool { return !behind.Has(node) })
		for _, v := range on.Short {
			if !v.Never() {
				short[v.Resource] = append(short[v.Resource], nodes...)
			}
		}
	}
	if len(short) == 0 {
		return []usage{ahead, amountOf(r.Resource, sets.List(behind))}
	}
	all := []usage{ahead}
	for _, name := range slices.Sorted(maps.Keys(short)) {
		all = append(all, amountOf(name, short[name]))
	}
	return all
}

// users are those that have what some usages are about, a line each, and whether and when they go.
func users(c *stage.Context, all []usage) (lines []string) {
	more := 0
	for _, u := range all {
		for _, h := range c.Others() {
			pods := slices.DeleteFunc(slices.Clone(h.Pods), func(p *corev1.Pod) bool { return !u.uses(p) })
			switch {
			case len(pods) == 0:
			case len(lines) == stage.MaxLines:
				more++
			default:
				lines = append(lines, fmt.Sprintf("%s %s%s", c.Title(h), u.clause(1, pods), c.Prospects(h, pods...)))
			}
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("so do %d others", more))
	}
	return lines
}

// nodesOf are the nodes of some pods, ordered by name.
func nodesOf(pods []*corev1.Pod) []string {
	nodes := sets.New[string]()
	for _, p := range pods {
		nodes.Insert(p.Spec.NodeName)
	}
	return sets.List(nodes)
}

// onNodesOf restricts what is reported of pods to those on the nodes of a room.
func onNodesOf(r placement.Room, is func(*corev1.Pod) bool) func(*corev1.Pod) bool {
	return podsOn(r.NodeNames(), is)
}

// podsOn restricts what is reported of pods to those on some nodes.
func podsOn(names []string, is func(*corev1.Pod) bool) func(*corev1.Pod) bool {
	nodes := sets.New(names...)
	return func(p *corev1.Pod) bool { return nodes.Has(p.Spec.NodeName) && is(p) }
}

// obstructing reports whether a pod has, where the gang may be, some of what the gang does not find on a cluster.
func obstructing(c *stage.Context, cluster *placement.Cluster) func(*corev1.Pod) bool {
	return usedBy(usagesOf(c, cluster, c.Causes(cluster)))
}

// usagesOf are how pods have what some causes are about, the first cause first; without any what the gang probably lacks.
func usagesOf(c *stage.Context, cluster *placement.Cluster, causes placement.Causes) (all []usage) {
	if len(causes.All) == 0 {
		r := c.Lacking()
		return usages(c, cluster, placement.Resource(r.Resource), r)
	}
	for _, cause := range causes.Ordered() {
		all = append(all, usages(c, cluster, cause.Constraint, c.RoomOf(cluster, causes, cause))...)
	}
	return all
}

// usedBy reports whether a pod has any of some usages.
func usedBy(all []usage) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool {
		return slices.ContainsFunc(all, func(u usage) bool { return u.uses(p) })
	}
}
