package preemption

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
)

// grouped makes a pod a member of a gang that the engine knows, as the engine sees it.
func grouped(group string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group} }
}

// owned gives a pod a controller.
func owned(by string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: by, UID: types.UID(by), Controller: ptr.To(true)}}
	}
}

// belongs is to its group, or else to its job, or else to what a label names, as [Plugin.membership] has it.
func belongs(pod *corev1.Pod) (Membership, bool) {
	m := Membership{Min: -1, Priority: *pod.Spec.Priority}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		m.Gang = jobGang + owner.Name
	}
	if label := pod.Labels["gang"]; label != "" {
		m.Gang = label
	}
	if group, in := engine.GroupOf(pod); in {
		m.Gang = group.String()
	}
	return m, m.Gang != ""
}

// Who may have to go is found out by the nodes with a pod of a lower priority, or one that leaves, as it is by all nodes; of the other pods only those are
// asked for their gangs that may be in one of those.
func TestFewAreAsked(t *testing.T) {
	const nodes, below = 12, 3
	few := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		var list []*corev1.Node
		var running []*corev1.Pod
		for n := range nodes {
			node := fmt.Sprint("n", n)
			list = append(list, aNode(node, 10))
			for i := range r.IntN(4) {
				p := aPod(fmt.Sprint("p", n, i), node, 1, ranked(int32(below)), started(r.IntN(9)))
				if r.IntN(12) == 0 {
					ranked(r.Int32N(below))(p)
				}
				if r.IntN(20) == 0 {
					p.DeletionTimestamp = &metav1.Time{Time: noon}
				}
				switch g := fmt.Sprint("g", r.IntN(4)); r.IntN(6) {
				case 0, 1:
					grouped(g)(p)
				case 2:
					owned(g)(p)
				case 3:
					if seed%3 == 0 { // such a gang may have any pod
						in(g, 2)(p)
					}
				}
				running = append(running, p)
			}
		}
		cluster := placement.NewCluster(placement.Objects{Nodes: list, Pods: running})
		w := watch(t)
		pl := &Plugin{preemptor: w.Preemptor, args: DefaultArgs()}
		leave := pl.departures(nil)
		h := leave.occupants(cluster, below)
		asked := 0
		got := Collect(h.staying, leave.others(cluster), func(p *corev1.Pod) (Membership, bool) { asked++; return belongs(p) }, below)
		var staying, leaving []*corev1.Pod
		for _, p := range running {
			if p.DeletionTimestamp == nil {
				staying = append(staying, p)
			} else {
				leaving = append(leaving, p)
			}
		}
		want := collectAll(staying, below)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: got %+v, want %+v", seed, got, want)
		}
		slices.SortFunc(leaving, comparePods)
		if !slices.Equal(h.leaving, leaving) {
			t.Fatalf("seed %d: %d leave, want %d", seed, len(h.leaving), len(leaving))
		}
		if asked < len(staying) {
			few++
		}
	}
	if few < 2000 {
		t.Errorf("all pods were asked in %d of 3000 clusters", 3000-few)
	}
}

// collectAll asks every pod: parts of a composite group may be anywhere.
func collectAll(staying []*corev1.Pod, below int32) Candidates {
	return Collect(staying, slices.Values(staying), func(p *corev1.Pod) (Membership, bool) {
		m, ok := belongs(p)
		if ok {
			m.Part = "any"
		}
		return m, ok
	}, below)
}
