package advice

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// maxChoices is up to how many choices of the pods of a service are all tried, to know that it is the same whichever go; in a large cluster it is maxFew.
const maxChoices = 64

// sparing is a minimal set of consumers in which services lose no more pods than have to go for the gang to start. after is what comes of that.
func (s *search) sparing(set []*view.Consumer) (spared []*view.Consumer, after ended) {
	whole := s.without(set)
	if !whole.starts {
		return set, whole
	}
	before := s.budget
	s.end = s.share(2).end // without the rest of the time it is the set
	spared = slices.Clone(set)
	with := func(i int, pods []*corev1.Pod) []*view.Consumer {
		all := slices.Clone(spared)
		all[i] = set[i].Part(pods)
		return all
	}
	var unordered []int
	for i, h := range set {
		d, ok := stage.ScaleDownOf(h)
		if !ok {
			continue
		}
		if pods := s.fewestPods(d, func(pods []*corev1.Pod) bool { return s.frees(with(i, pods)) }); len(pods) < len(d.Pods) && !s.spent() {
			spared[i] = h.Part(pods)
			if !d.Ordered {
				unordered = append(unordered, i)
			}
		}
	}
	for _, i := range unordered {
		part := spared[i]
		fits := func(pods []*corev1.Pod) bool {
			return !s.spent() && s.placed(s.cleared(with(i, pods)), s.base.Request.Gang).Fits()
		}
		part.AnyOf = len(unordered) == 1 && s.whichever(set[i], len(part.Pods), fits) // of several each was tried with the same pods of the others
		if !part.AnyOf && len(part.Pods) > command.MaxObjects {
			spared[i] = set[i] // they could not be marked
		}
	}
	s.budget, s.few = before, few{} // a cluster is large
	if !slices.Equal(spared, set) {
		if after = s.without(spared); after.starts {
			return spared, after
		}
	}
	return set, whole // a queue or a quota allows less than there is room for
}

// fewestPods are the fewest pods of a service whose going is enough: all of them, if no fewer are known to be.
func (s *search) fewestPods(d stage.ScaleDown, enough func([]*corev1.Pod) bool) []*corev1.Pod {
	switch first := d.Pods[:d.First]; {
	case d.Ordered:
		n, ok := smallest(1, int64(len(d.Pods)-1), func(n int64) bool { return enough(d.Pods[:n]) })
		if !ok {
			return d.Pods
		}
		return d.Pods[:n]
	case len(first) > 0 && enough(first):
		return first
	default:
		return slices.Concat(first, s.spare(d.Pods[d.First:], func(rest []*corev1.Pod) bool { return enough(slices.Concat(first, rest)) }))
	}
}

// spare are few of some pods whose going is enough, where all are, and none of which may stay. Members may need whole nodes, or a little of many: one order of the pods has those of
// a node one after the other, on nodes where members would be, and another one has a pod of each node first.
func (s *search) spare(pods []*corev1.Pod, enough func([]*corev1.Pod) bool) []*corev1.Pod {
	pods = s.largestFirst(pods)
	fewest := pods
	for _, order := range [][]*corev1.Pod{s.whereMembersWouldBe(pods), oneOfEachNode(pods)} {
		n, ok := smallest(1, int64(min(len(order), len(fewest)-1)), func(n int64) bool { return enough(order[:n]) })
		if ok {
			fewest = order[:n]
		}
	}
	if len(fewest) > s.upTo(maxSingles) {
		return fewest
	}
	return least(fewest, enough)
}

// largestFirst sorts pods by what they request of what is short, and those that request the same by their nodes.
func (s *search) largestFirst(pods []*corev1.Pod) []*corev1.Pod {
	short := corev1.ResourceCPU
	for _, f := range s.base.Findings() {
		if name, ok := f.Facts["resource"].(string); ok {
			short = corev1.ResourceName(name)
			break
		}
	}
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(podrequest.OfResource(b, short), podrequest.OfResource(a, short)), cmp.Compare(a.Spec.NodeName, b.Spec.NodeName))
	})
	return pods
}

// whereMembersWouldBe puts those pods first that are where a placement has members which is there once all pods are gone.
func (s *search) whereMembersWouldBe(pods []*corev1.Pod) []*corev1.Pod {
	used := map[string]bool{}
	for _, a := range s.placed(s.cluster().Without(placement.PodIDs(pods)...), s.base.Request.Gang).Placement {
		used[a.Node] = true
	}
	return stage.FirstThose(pods, func(p *corev1.Pod) bool { return used[p.Spec.NodeName] })
}

// oneOfEachNode has the first pod of each node before the second ones.
func oneOfEachNode(pods []*corev1.Pod) []*corev1.Pod {
	before, at := map[*corev1.Pod]int{}, map[string]int{}
	for _, p := range pods {
		before[p] = at[p.Spec.NodeName]
		at[p.Spec.NodeName]++
	}
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(before[a], before[b]) })
	return pods
}

// whichever reports whether it is enough that so many pods go, whichever of those that may.
func (s *search) whichever(h *view.Consumer, count int, enough func([]*corev1.Pod) bool) bool {
	d, _ := stage.ScaleDownOf(h)
	first, rest := d.Pods[:d.First], d.Pods[d.First:]
	if count <= len(first) {
		return count == len(first)
	}
	if most := s.upTo(maxChoices); choices(len(rest), count-len(first), most) > most {
		return false
	}
	for some := range combinations(rest, count-len(first)) {
		if !enough(slices.Concat(first, some)) {
			return false
		}
	}
	return true
}
