package preemption

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// scarce is the resource that the preemptor requests most, in terms of what there
// is of it.
func (s *search) scarce() corev1.ResourceName {
	most, name := 0.0, corev1.ResourceCPU
	desired := map[corev1.ResourceName]float64{}
	for _, role := range s.Gang.Roles {
		for resource, q := range request.Of(role.Pod) {
			desired[resource] += float64(request.Amount(resource, q)) * float64(role.Count)
		}
	}
	have := map[corev1.ResourceName]float64{}
	for _, node := range s.Cluster.Nodes() {
		for resource, q := range node.Status.Allocatable { // nodes have few, and tenants may request many
			have[resource] += float64(request.Amount(resource, q))
		}
	}
	for resource, amount := range desired {
		share := amount / max(have[resource], 1)
		if share > most || share == most && resource < name {
			most, name = share, resource
		}
	}
	return name
}

// The weight of a pod of a gang as a whole, in terms of single pods, and that of
// a node that is of no use.
const (
	gangWeight = 1000
	useless    = math.MaxInt32
)

// crowd are the pods of a pool by node, with their weights.
func (s *search) crowd(pool set) (pods map[string][]*corev1.Pod, weights map[string]int64) {
	pods, weights = map[string][]*corev1.Pod{}, map[string]int64{}
	for i, u := range s.units {
		for _, pod := range u.Pods {
			if !pool[i] {
				continue
			}
			pods[pod.Spec.NodeName] = append(pods[pod.Spec.NodeName], pod)
			weights[string(pod.UID)] = 1
			if u.Kind == Whole {
				weights[string(pod.UID)] = gangWeight
			}
		}
	}
	return pods, weights
}

// byCrowd ranks nodes by how little of the pool is on them.
func (s *search) byCrowd(pool set) func(*corev1.Node) int64 {
	pods, weights := s.crowd(pool)
	return func(n *corev1.Node) int64 {
		var sum int64
		for _, pod := range pods[n.Name] {
			sum += weights[string(pod.UID)]
		}
		return -sum
	}
}

// byNeed ranks nodes by how little has to go for one of the preemptor's largest
// members to fit.
func (s *search) byNeed(pool set) func(*corev1.Node) int64 {
	pods, weights := s.crowd(pool)
	name := s.scarce()
	role := slices.MaxFunc(s.Gang.Roles, func(a, b placement.Role) int {
		return cmp.Compare(request.OfResource(a.Pod, name), request.OfResource(b.Pod, name))
	})
	desired := request.Of(role.Pod)
	ranks := map[string]int64{}
	for _, node := range s.Cluster.Nodes() {
		here := slices.Clone(pods[node.Name])
		slices.SortStableFunc(here, func(a, b *corev1.Pod) int {
			return cmp.Or(cmp.Compare(weights[string(a.UID)], weights[string(b.UID)]), cmp.Compare(request.OfResource(b, name), request.OfResource(a, name)))
		})
		short := map[corev1.ResourceName]int64{}
		free := s.Cluster.Free(node.Name)
		for resource, q := range desired {
			if lack := request.Amount(resource, q) - request.Amount(resource, free[resource]); lack > 0 {
				short[resource] = lack
			}
		}
		var need int64
		for _, pod := range here {
			if len(short) == 0 {
				break
			}
			need += weights[string(pod.UID)]
			for resource := range short {
				if short[resource] -= request.OfResource(pod, resource); short[resource] <= 0 {
					delete(short, resource)
				}
			}
		}
		if len(short) > 0 {
			need = useless
		}
		ranks[node.Name] = -need
	}
	return func(n *corev1.Node) int64 { return ranks[n.Name] }
}
