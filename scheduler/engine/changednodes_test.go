package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// changingCache is a cache of the engine that random things happen to.
type changingCache struct {
	internalcache.Cache
	r       *rand.Rand
	nodes   []*corev1.Node
	pods    []*corev1.Pod // added
	assumed []*corev1.Pod
	named   int
}

func (c *changingCache) change(t *testing.T) {
	t.Helper()
	logger := klog.Background()
	c.named++
	name := fmt.Sprint("n", c.r.IntN(20))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("p", c.named), UID: types.UID(fmt.Sprint(c.named))}, Spec: corev1.PodSpec{NodeName: name}}
	take := func(pods *[]*corev1.Pod) (taken *corev1.Pod) {
		if len(*pods) == 0 {
			return nil
		}
		at := c.r.IntN(len(*pods))
		taken = (*pods)[at]
		*pods = slices.Delete(*pods, at, at+1)
		return taken
	}
	var err error
	switch c.r.IntN(9) {
	case 0:
		err = c.AddPod(logger, pod)
		c.pods = append(c.pods, pod)
	case 1, 2:
		err = c.AssumePod(logger, pod)
		c.assumed = append(c.assumed, pod)
	case 3: // what was assumed is bound, mostly on its node
		if was := take(&c.assumed); was != nil {
			bound := was.DeepCopy()
			if c.r.IntN(3) == 0 {
				bound.Spec.NodeName = name
			}
			err = c.AddPod(logger, bound)
			c.pods = append(c.pods, bound)
		}
	case 4:
		if was := take(&c.assumed); was != nil {
			err = c.ForgetPod(logger, was)
		}
	case 5:
		if was := take(&c.pods); was != nil {
			err = c.RemovePod(logger, was)
		}
	case 6:
		if was := take(&c.pods); was != nil {
			after := was.DeepCopy()
			after.Labels = map[string]string{"a": "b"}
			err = c.UpdatePod(logger, was, after)
			c.pods = append(c.pods, after)
		}
	case 7:
		after := c.nodes[0].DeepCopy()
		after.Labels = map[string]string{"a": fmt.Sprint(c.named)}
		c.UpdateNode(logger, c.nodes[0], after)
		c.nodes = append(c.nodes[1:], after)
	case 8:
		if was := take(&c.assumed); was != nil {
			err = c.RemoveAssumedPod(logger, was)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func generations(t *testing.T, snapshot *internalcache.Snapshot) map[string]int64 {
	t.Helper()
	list, err := snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, info := range list {
		out[info.Node().Name] = info.GetGeneration()
	}
	return out
}

// Whatever happens to the cache, the nodes that differ in the next snapshot are named, and not all nodes are.
func TestChangedNodes(t *testing.T) {
	metrics.Register() // the cache counts
	named, changed := 0, 0
	for seed := range uint64(200) {
		nodes, contents := NewChangedNodes(), NewNodeContents()
		c := &changingCache{Cache: WatchCache(internalcache.New(t.Context(), nil, false, false), nodes, contents, NewAssumedPods(), ignored), r: rand.New(rand.NewPCG(seed, 1))}
		for i := range 20 {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}
			c.AddNode(klog.Background(), node)
			c.nodes = append(c.nodes, node)
		}
		snapshot := internalcache.NewEmptySnapshot()
		if err := c.UpdateSnapshot(klog.Background(), snapshot); err != nil {
			t.Fatal(err)
		}
		if names, known := nodes.Take(); known {
			t.Fatalf("the first time: %v", names)
		}
		before := generations(t, snapshot)
		for range 40 {
			for range c.r.IntN(4) {
				c.change(t)
			}
			if early, _ := nodes.Take(); len(early) > 0 {
				t.Fatalf("seed %d: %v are named before they are in the snapshot", seed, early)
			}
			if err := c.UpdateSnapshot(klog.Background(), snapshot); err != nil {
				t.Fatal(err)
			}
			names, known := nodes.Take()
			if !known {
				t.Fatalf("seed %d: any node may have changed", seed)
			}
			named += len(names)
			now := generations(t, snapshot)
			for name, generation := range now {
				if generation == before[name] {
					continue
				}
				changed++
				if !slices.Contains(names, name) {
					t.Fatalf("seed %d: node %s has changed, and %v are named", seed, name, names)
				}
			}
			before = now
		}
	}
	if changed < 1000 || named > changed*5/4 {
		t.Errorf("%d nodes have changed, %d are named", changed, named)
	}
}

// Pods name nodes that nobody has. They do not decide how much is kept.
func TestChangedNodesAreBounded(t *testing.T) {
	metrics.Register()
	nodes, contents := NewChangedNodes(), NewNodeContents()
	cache := WatchCache(internalcache.New(t.Context(), nil, false, false), nodes, contents, NewAssumedPods(), ignored)
	nodes.Take()
	for i := range maxChanged + 1 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint(i))}, Spec: corev1.PodSpec{NodeName: fmt.Sprint("none", i)}}
		if err := cache.AddPod(klog.Background(), pod); err != nil {
			t.Fatal(err)
		}
	}
	if err := cache.UpdateSnapshot(klog.Background(), internalcache.NewEmptySnapshot()); err != nil {
		t.Fatal(err)
	}
	if names, known := nodes.Take(); known || len(names) > 0 {
		t.Errorf("%d names, known %t", len(names), known)
	}
	if _, known := nodes.Take(); !known {
		t.Error("it does not recover")
	}
	nodes.Suspect()
	if _, known := nodes.Take(); known {
		t.Error("a suspicion is forgotten")
	}
}
