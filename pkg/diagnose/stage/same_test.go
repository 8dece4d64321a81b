package stage

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/placement"
)

// outage is a cluster in which some nodes went down, and members of gangs with them.
func outage(r *rand.Rand) *snapshot.Snapshot {
	c, room := clustertest.New(), map[string]int64{}
	for i := range 4 + r.IntN(8) {
		n := c.Node(fmt.Sprintf("n%d", i), 8)
		room[n.Name] = 8
		switch r.IntN(6) {
		case 0, 1:
			clustertest.NotReady(n, 10*time.Minute)
			n.Status.Conditions[0].Status = corev1.ConditionUnknown
		case 2:
			n.Spec.Unschedulable = true
		case 3:
			n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	place := func(members int, gpus int64) (nodes []string) {
		for i := 0; i < len(room) && len(nodes) < members; i++ {
			if n := fmt.Sprintf("n%d", i); room[n] >= gpus && r.IntN(2) == 0 {
				room[n] -= gpus
				nodes = append(nodes, n)
			}
		}
		return nodes
	}
	leaves := func(i int, p *corev1.Pod) {
		if at := clustertest.Ago(time.Duration(r.IntN(400)-200) * time.Second); p.Spec.NodeName != "" && r.IntN(3) == 0 {
			p.DeletionTimestamp = &at
		}
	}
	for i := range 3 {
		gpus := int64(1 + r.IntN(4))
		if nodes := place(3, gpus); len(nodes) > 0 {
			c.Add(clustertest.Gang{Namespace: "research", Name: fmt.Sprintf("job%d", i), Workers: len(nodes) + r.IntN(2), GPUs: gpus, Nodes: nodes, Pod: leaves})
		}
		c.Serves(fmt.Sprintf("web%d", i), 1, place(2, 1)...)
	}
	for i := range 3 {
		g := clustertest.Gang{Name: fmt.Sprintf("gang%d", i), Workers: 3, GPUs: int64(4 + 4*r.IntN(2)), Pod: leaves}
		g.Nodes = place(r.IntN(4), g.GPUs)
		if r.IntN(6) == 0 {
			g.Spec = func(p *corev1.PodSpec) { p.Affinity = clustertest.Apart(g.Name) }
		}
		c.Add(g)
	}
	return c.Done()
}

// What a gang finds on its own cluster is what it finds where nothing is known from others.
func TestSameAsOnItsOwnCluster(t *testing.T) {
	search := func(cl *placement.Cluster, g placement.Gang, ignore placement.Constraints) placement.Result {
		return placement.Place(t.Context(), cl, g, placement.Options{Ignore: ignore, Budget: time.Minute})
	}
	causes := func(cl *placement.Cluster, g placement.Gang, ignore placement.Constraints) placement.Causes {
		return placement.FindCauses(t.Context(), cl, g, placement.Options{Ignore: ignore, Budget: time.Minute})
	}
	tools := Tools{Search: search, Causes: causes, Matrix: func(cl *placement.Cluster, p *corev1.Pod) placement.Matrix { return cl.Matrix(p) }}
	shared, derived := 0, 0
	for seed := range uint64(300) {
		v := view.New(outage(rand.New(rand.NewPCG(seed, 1))))
		for i := range 3 {
			job, err := v.Find(view.Query{Namespace: "team", Name: fmt.Sprintf("gang%d", i)})
			if err != nil {
				t.Fatal(err)
			}
			c := NewContext(v, v.Gang(job), audience.Reader{}, tools, nil)
			if len(c.Request.Roles) == 0 {
				continue
			}
			stays := func(h *view.Consumer, p *corev1.Pod) bool { return h.Keeps(p) && !v.Stuck(p) }
			for name, cl := range map[string]*placement.Cluster{
				"now": c.Cluster(), "best": c.Best(), "after the ends": c.AfterEnds(), "after the deletions": c.AfterDeletions(), "without those that stay": c.Cleared("stay", stays),
			} {
				at := fmt.Sprintf("seed %d, %s of gang%d", seed, name, i)
				if !v.IsCommon(cl) {
					derived++
					if c.same(cl, liftable()) != nil {
						shared++
					}
				}
				got, want := c.Fit(cl, nil), search(cl, c.Request.Gang, nil)
				if name != "now" && got.Fits() && want.Fits() {
					got.Placement, want.Placement = nil, nil // any that fits is one
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%s: another placement (-own +known):\n%s", at, diff)
				}
				if got, want := c.Causes(cl).String(), causes(cl, c.Request.Gang, nil).String(); got != want {
					t.Fatalf("%s: causes %s, and %s on its own", at, got, want)
				}
				role := c.Request.Roles[0]
				if diff := cmp.Diff(cl.Matrix(role.Pod), c.MatrixOn(cl, role), cmp.AllowUnexported(placement.Matrix{}, placement.Row{}), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("%s: another matrix (-own +known):\n%s", at, diff)
				}
			}
			for name, match := range map[string]func(*view.Consumer, *corev1.Pod) bool{"after the ends": c.EndsAlone, "stay": stays} {
				got, want := c.Cleared(name, match), c.Without(match)
				for _, n := range v.Snap.Nodes {
					if diff := cmp.Diff(podNames(want.PodsOn(n.Name)), podNames(got.PodsOn(n.Name))); diff != "" {
						t.Fatalf("seed %d, %s of gang%d: other pods on %s (-own +derived):\n%s", seed, name, i, n.Name, diff)
					}
				}
				if (want == c.Cluster()) != (got == c.Cluster()) {
					t.Fatalf("seed %d, %s of gang%d: whether anything is different is not known", seed, name, i)
				}
			}
		}
	}
	if shared == 0 || derived == 0 {
		t.Errorf("of %d clusters of gangs of their own %d are like a common one: nothing was compared", derived, shared)
	}
}

func podNames(pods []*corev1.Pod) (names []string) {
	for _, p := range pods {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}
