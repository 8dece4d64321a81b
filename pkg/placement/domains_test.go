package placement

import (
	"fmt"
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestDomains(t *testing.T) {
	o := levelled("r1 b1", "r1 b1 used 8", "r2 b1", "r2 b1", "r3 b2 used 4", "- b2")
	two := Gang{Roles: []Role{role("Worker", 3, aPod("w", amounts("gpu", 8)))}}
	// A chief with 8 and workers with 4 would fit on a node each, but not together on one.
	mixed := Gang{Roles: []Role{role("Chief", 1, aPod("c", amounts("gpu", 8))), role("Worker", 2, aPod("w", amounts("gpu", 4)))}}
	o.Pods = append(o.Pods, aPod("w-0", amounts("cpu", 1), on("n1")))
	bound := two
	bound.Bound = []types.UID{"uid-w-0"}
	for name, tc := range map[string]struct {
		gang Gang
		want string
	}{
		"one role":         {two, "[{r2 2 0 2} {r1 1 0 2} {r3 0 0 1}]"},
		"roles":            {mixed, "[{r2 3 0 2} {r1 2 0 2} {r3 1 0 1}]"},
		"members with one": {bound, "[{r2 2 0 2} {r1 1 1 2} {r3 0 0 1}]"},
	} {
		if got := fmt.Sprint(NewCluster(o).Domains(t.Context(), tc.gang, "rack", Options{})); got != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
	if got := NewCluster(o).BoundDomains(bound.Bound, "rack"); !slices.Equal(got, []string{"r1"}) {
		t.Errorf("the bound members are in %v", got)
	}
}

// A label is around another if no domain of that is in two of its own.
func TestAround(t *testing.T) {
	o := levelled("r1 b1", "r1 b1", "r2 b1", "r3 b2", "r4 b2", "- b3")
	for i, n := range o.Nodes {
		n.Labels["zone"], n.Labels["pool"] = "z1", fmt.Sprint("p", i%2)
		n.Labels[corev1.LabelArchStable], n.Labels["nvidia.com/gpu.product"] = "amd64", "H100" // which say what a node is, not where
	}
	if got := NewCluster(o).Around("rack"); !slices.Equal(got, []string{"block", "zone"}) {
		t.Errorf("around racks are %v", got)
	}
	if got := NewCluster(o).Around("zone"); len(got) > 0 {
		t.Errorf("around zones are %v", got)
	}
}

// Users write the numbers of members, and nodes on which a resource does not count have room for any: what is summed does not wrap.
func TestDomainsOfAbsurdGangs(t *testing.T) {
	free := aPod("w", nil)
	g := Gang{Roles: []Role{role("A", math.MaxInt32, free), role("B", math.MaxInt32, free)}}
	for i := range g.Roles {
		g.Roles[i].Ignore = Constraints{}.Insert(Pods)
	}
	for _, r := range NewCluster(levelled("r1 b1", "r1 b1", "r2 b1")).Domains(t.Context(), g, "rack", Options{}) {
		if r.Members < 1 {
			t.Errorf("%+v", r)
		}
	}
}
