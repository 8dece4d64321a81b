package replacement

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/enginetest"
)

// What every cycle costs while no member is missing, on 5,000 nodes that are all
// full of members.
func BenchmarkNoMemberIsMissing(b *testing.B) {
	e := &cycle{}
	l := newTracker(gangA{}, e, &unparked{}, clock.RealClock{})
	var nodes []*corev1.Node
	var pods []*corev1.Pod
	for i := range 5000 {
		node := fmt.Sprintf("n%d", i)
		nodes = append(nodes, enginetest.Node(node, 8))
		for j := range 8 {
			pod := enginetest.Pod(fmt.Sprintf("a-%d-%d", i, j), "a", enginetest.On(node))
			pods = append(pods, pod)
			l.see(pod)
		}
	}
	e.snapshot = internalcache.NewSnapshot(pods, nodes)
	e.pods = corelisters.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}))
	l.refresh()
	for b.Loop() {
		if l.refresh(); len(l.loose) > 0 {
			b.Fatal("something is claimed")
		}
	}
}
