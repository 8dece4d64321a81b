package placement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// What an index counts of pods is what is there, whatever happened before; a what-if hides nobody who is to be counted.
func TestPodsBeside(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	s, x, rest := newRunning(r, fleetObjects(10)), NewIndex(), &Objects{}
	var there []*corev1.Pod
	for step := range 3000 {
		name := fmt.Sprintf("n%05d", r.IntN(10))
		if len(there) > 0 && r.IntN(2) == 0 {
			at := r.IntN(len(there))
			if err := s.infos[there[at].Spec.NodeName].RemovePod(klog.Background(), there[at]); err != nil {
				t.Fatal(err)
			}
			there = append(there[:at], there[at+1:]...)
		} else {
			p := aPod(fmt.Sprint("p", step), nil, on(name))
			p.Spec.Priority = ptr.To(r.Int32N(4))
			if r.IntN(20) == 0 {
				p.DeletionTimestamp = &metav1.Time{}
			}
			s.infos[name].AddPod(p)
			there = append(there, p)
		}
		c := x.Update(s.list, rest)
		plain := NewCluster(Objects{Nodes: c.Nodes(), Pods: allPods(c)})
		for priority := range int32(6) {
			beside := map[string]int{}
			for node := range c.PodsBeside(priority, name, "unknown") {
				beside[node]++
			}
			want := map[string]int{}
			for node, p := range c.Pods() {
				if node == name || corev1helpers.PodPriority(p) < priority || p.DeletionTimestamp != nil {
					want[node] = len(c.PodsOn(node))
				}
			}
			unindexed := map[string]int{}
			for node := range plain.PodsBeside(priority, name) {
				unindexed[node]++
			}
			if !maps.Equal(beside, want) || !maps.Equal(unindexed, want) {
				t.Fatalf("step %d: %v are beside %d, without an index %v, want %v", step, beside, priority, unindexed, want)
			}
		}
		low := aPod("low", nil, on(name))
		low.Spec.Priority = ptr.To[int32](-1)
		found := false
		for _, p := range c.With(low).PodsBeside(0) {
			found = found || p.Name == low.Name
		}
		if !found {
			t.Fatalf("step %d: a pod of a what-if is not counted", step)
		}
	}
}

func allPods(c *Cluster) (pods []*corev1.Pod) {
	for _, p := range c.Pods() {
		pods = append(pods, p)
	}
	return pods
}
