package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// ignored does nothing for a node that is removed.
func ignored(klog.Logger, *corev1.Node) {}

func uids(pods []*corev1.Pod) []types.UID {
	set := map[types.UID]bool{}
	for _, pod := range pods {
		set[pod.UID] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// Whatever happens to the cache, the contents of its nodes are those of the cache, and before what left them they had all that they have had since
// the last time, and what came since.
func TestNodeContents(t *testing.T) {
	metrics.Register() // the cache counts
	for seed := range uint64(100) {
		contents := NewNodeContents()
		c := &changingCache{Cache: WatchCache(internalcache.New(t.Context(), nil, false, false), NewChangedNodes(), contents, NewAssumedPods(), ignored), r: rand.New(rand.NewPCG(seed, 2))}
		for i := range 20 {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}
			c.AddNode(klog.Background(), node)
			c.nodes = append(c.nodes, node)
			if before, _, ok := contents.Take(node.Name); !ok || before.Node != nil {
				t.Fatalf("before it came the node was %+v, %v", before, ok)
			}
		}
		had := map[string]map[types.UID]*corev1.Pod{} // of each node since it was taken
		for step := range 200 {
			c.change(t)
			for name, info := range c.Dump().Nodes {
				if had[name] == nil {
					had[name] = map[types.UID]*corev1.Pod{}
				}
				var pods []*corev1.Pod
				for _, p := range info.Pods {
					pods = append(pods, p.GetPod())
					had[name][p.GetPod().UID] = p.GetPod()
				}
				if c.r.IntN(10) > 0 {
					continue
				}
				before, now, ok := contents.Take(name)
				on := slices.Concat(now.Pods, now.Assumed)
				if !ok || now.Node != info.Node() || !slices.Equal(uids(on), uids(pods)) || len(on) != len(pods) {
					t.Fatalf("seed %d, step %d, %s: %v, want %v", seed, step, name, uids(on), uids(pods))
				}
				for _, pod := range on {
					if assumed, err := c.IsAssumedPod(pod); err != nil || assumed != slices.Contains(now.Assumed, pod) {
						t.Fatalf("seed %d, step %d, %s: %s is assumed: %v, %v", seed, step, name, pod.UID, assumed, err)
					}
				}
				was := slices.Concat(before.Pods, before.Assumed)
				if all := slices.Collect(maps.Values(had[name])); !slices.Equal(uids(was), uids(all)) {
					t.Fatalf("seed %d, step %d, %s: before %v, want %v", seed, step, name, uids(was), uids(all))
				}
				had[name] = map[types.UID]*corev1.Pod{}
				for _, p := range pods {
					had[name][p.UID] = p
				}
			}
		}
	}
}

// A node is as it was before its own changes, those left out that no scheduler reads, until it is taken; one that is gone is not there.
func TestNodeContentsOfANodeThatChanges(t *testing.T) {
	metrics.Register()
	contents := NewNodeContents()
	cache := WatchCache(internalcache.New(t.Context(), nil, false, false), NewChangedNodes(), contents, NewAssumedPods(), ignored)
	node := func(cpu string, beat int64) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Generation: beat}}
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		return n
	}
	steps := []*corev1.Node{node("1", 1), node("1", 2), node("2", 3), node("3", 4), node("3", 5)}
	cache.AddNode(klog.Background(), steps[0])
	contents.Take("n")
	for i, now := range steps[1:] {
		cache.UpdateNode(klog.Background(), steps[i], now)
	}
	if before, now, ok := contents.Take("n"); !ok || before.Node != steps[1] || now.Node != steps[4] {
		t.Errorf("from %+v to %+v, %v", before.Node, now.Node, ok)
	}
	if before, now, _ := contents.Take("n"); before.Node != now.Node {
		t.Error("what was taken is counted again")
	}
	if err := cache.RemoveNode(klog.Background(), steps[4]); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := contents.Take("n"); ok || len(contents.nodes) != 0 {
		t.Errorf("the node is gone, and there are %d", len(contents.nodes))
	}
}
