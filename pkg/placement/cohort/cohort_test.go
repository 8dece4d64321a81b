package cohort

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

const gpu = "nvidia.com/gpu"

func tree(build func(*clustertest.Cluster)) *Tree {
	c := clustertest.New()
	build(c)
	objects := c.S.Custom
	return New(Objects{Queues: objects[kueue.Kind("ClusterQueue")], Cohorts: objects[kueue.Kind("Cohort")], Workloads: objects[kueue.Kind("Workload")], Flavors: objects[kueue.Kind("ResourceFlavor")]})
}

func gpus(nominal string, limits ...string) clustertest.Quota {
	q := clustertest.Quota{Flavor: "f", Resource: gpu, Nominal: nominal}
	for _, limit := range limits {
		if n, ok := strings.CutPrefix(limit, "borrow "); ok {
			q.Borrow = n
		}
		if n, ok := strings.CutPrefix(limit, "lend "); ok {
			q.Lend = n
		}
	}
	return q
}

// uses lets a job use GPUs of a queue.
func uses(c *clustertest.Cluster, queue, n string) *unstructured.Unstructured {
	u := c.Workload("of-"+queue, "lq", 0)
	clustertest.Admit(u, queue, "f", n)
	return u
}

func TestAmounts(t *testing.T) {
	tests := []struct {
		name                 string
		build                func(*clustertest.Cluster)
		available, potential int64
		lenders              int
	}{
		{"alone", func(c *clustertest.Cluster) { c.ClusterQueue("q", "", gpus("16")); uses(c, "q", "6") }, 10, 16, 1},
		{"another queue's use does not count", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "", gpus("16"))
			c.ClusterQueue("other", "", gpus("16"))
			uses(c, "other", "16")
		}, 16, 16, 1},
		{"a cohort lends", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "pool", gpus("16"))
			c.ClusterQueue("other", "pool", gpus("16"))
			uses(c, "other", "4")
		}, 28, 32, 2},
		{"others have borrowed from the queue", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "pool", gpus("16"))
			c.ClusterQueue("other", "pool", gpus("16"))
			uses(c, "other", "24")
		}, 8, 32, 2},
		{"what is not lent cannot be borrowed", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "pool", gpus("16", "lend 4"))
			c.ClusterQueue("other", "pool", gpus("16", "lend 6"))
			uses(c, "other", "20")
		}, 12, 22, 2},
		{"up to the borrowing limit", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "pool", gpus("16", "borrow 4"))
			c.ClusterQueue("other", "pool", gpus("16"))
		}, 20, 20, 2},
		{"a borrowing limit of nothing", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "pool", gpus("16", "borrow 0"))
			c.ClusterQueue("other", "pool", gpus("16"))
			uses(c, "q", "16")
		}, 0, 16, 2},
		{"the cohort has a quota of its own", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "pool", gpus("8"))
			c.Cohort("pool", "", gpus("32"))
			uses(c, "q", "8")
		}, 32, 40, 1},
		{"the cohort above lends too", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "pool", gpus("8"))
			c.ClusterQueue("far", "lake", gpus("32"))
			c.Cohort("pool", "sea")
			c.Cohort("lake", "sea")
			c.Cohort("sea", "")
			uses(c, "far", "10")
		}, 30, 40, 2},
		{"the cohort below borrows so much", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "pool", gpus("8"))
			c.ClusterQueue("far", "sea", gpus("32"))
			c.Cohort("pool", "sea", gpus("0", "borrow 4"))
		}, 12, 12, 2},
		{"cohorts in a circle", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "a", gpus("8", "borrow 0"))
			c.Cohort("a", "b")
			c.Cohort("b", "a")
		}, 8, 8, 1},
		{"what pods that have ended used is taken back", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "", gpus("8"))
			clustertest.Reclaim(uses(c, "q", "8"), 8, 6)
		}, 6, 8, 1},
		{"of a Workload that was admitted in part", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "", gpus("8"))
			u := clustertest.Reclaim(uses(c, "q", "8"), 8, 2)
			f := gang.Fields{Object: u}
			f.List("status", "admission", "podSetAssignments")[0]["count"] = int64(4)
		}, 0, 8, 1},
		{"of a Workload that was admitted in part, with fewer pods left", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "", gpus("8"))
			u := clustertest.Reclaim(uses(c, "q", "8"), 8, 6)
			f := gang.Fields{Object: u}
			f.List("status", "admission", "podSetAssignments")[0]["count"] = int64(4)
		}, 4, 8, 1},
		{"no more than all of it", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "", gpus("8"))
			clustertest.Reclaim(uses(c, "q", "8"), 2, 3)
		}, 8, 8, 1},
		{"of a pod set without a count nothing is known", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "", gpus("8"))
			clustertest.Reclaim(uses(c, "q", "6"), 0, 3)
		}, 2, 8, 1},
		{"a finished Workload uses nothing", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "", gpus("16"))
			u := c.Workload("done", "lq", 0)
			clustertest.Admit(u, "q", "f", "16")
			status := u.Object["status"].(map[string]any)
			status["conditions"] = append(status["conditions"].([]any), clustertest.Condition("Finished", "True", "", "", 0))
		}, 16, 16, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := tree(tt.build)
			got := tr.Available("q")
			if len(got.quotas) != 1 || got.quotas[0].Available != tt.available || got.quotas[0].Potential != tt.potential {
				t.Errorf("got %+v, want %d available of %d", got.quotas, tt.available, tt.potential)
			}
			if got := tr.Lenders("q"); len(got) != tt.lenders {
				t.Errorf("lenders: got %v", got)
			}
		})
	}
}

func podSet(name string, requests corev1.ResourceList, change ...func(*corev1.PodSpec)) PodSet {
	set := PodSet{Name: name, Requests: requests}
	for _, f := range change {
		f(&set.Spec)
	}
	return set
}

func TestAssign(t *testing.T) {
	two := func(c *clustertest.Cluster) {
		c.Flavor("h100", "class", "h100")
		c.Flavor("a100", "class", "a100")
		c.ClusterQueue("q", "", clustertest.Quota{Flavor: "h100", Resource: gpu, Nominal: "8"}, clustertest.Quota{Flavor: "a100", Resource: gpu, Nominal: "16"})
	}
	grouped := func(c *clustertest.Cluster) {
		c.ClusterQueue("q", "", clustertest.Quota{Flavor: "any", Resource: "cpu", Nominal: "100"}, clustertest.Quota{Flavor: "f", Resource: gpu, Nominal: "8", Group: 1})
	}
	want := func(class string) func(*corev1.PodSpec) {
		return func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": class, "disk": "ssd"} }
	}
	either := func(p *corev1.PodSpec) {
		p.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "class", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"h100"}}, {Key: "disk", Operator: corev1.NodeSelectorOpExists}}}}}}}
	}
	list := clustertest.List
	tests := []struct {
		name    string
		build   func(*clustertest.Cluster)
		podSets []PodSet
		want    string
	}{
		{"the first flavor that has enough", two, []PodSet{podSet("w", list(gpu, "8"))}, "map[w:[h100]]"},
		{"the next one", two, []PodSet{podSet("w", list(gpu, "16"))}, "map[w:[a100]]"},
		{"each role its own", two, []PodSet{podSet("a", list(gpu, "8")), podSet("b", list(gpu, "8"))}, "map[a:[h100] b:[a100]]"},
		{"none", two, []PodSet{podSet("w", list(gpu, "24"))}, "w requests 24 of 16 a100 (never)"},
		{"the nodes that the pods select", two, []PodSet{podSet("w", list(gpu, "8"), want("a100"))}, "map[w:[a100]]"},
		{"and these have not enough", two, []PodSet{podSet("w", list(gpu, "16"), want("h100"))}, "w requests 16 of 8 h100 (never)"},
		{"nodes that no flavor has", two, []PodSet{podSet("w", list(gpu, "1"), want("b200"))}, "w suits none of h100, a100"},
		{"an affinity", two, []PodSet{podSet("w", list(gpu, "8"), either)}, "map[w:[a100]]"},
		{"two roles together", two, []PodSet{podSet("a", list(gpu, "8"), want("h100")), podSet("b", list(gpu, "1"), want("h100"))}, "b requests 9 of 8 h100 (never)"},
		{"a flavor of each group", grouped, []PodSet{podSet("w", list("cpu", "4", gpu, "8"))}, "map[w:[any f]]"},
		{"one group is short", grouped, []PodSet{podSet("w", list("cpu", "4", gpu, "9"))}, "w requests 9 of 8 f (never)"},
		{"nothing of a group", grouped, []PodSet{podSet("w", list("cpu", "4"))}, "map[w:[any]]"},
		{"a device without a quota", grouped, []PodSet{podSet("w", list("cpu", "1", "rdma/hca", "1"))}, "map[w:[any]]"},
		{"a common resource without a quota", grouped, []PodSet{podSet("w", list("cpu", "1", "ephemeral-storage", "1Gi"))}, "map[w:[any]]"},
		{"a taint", func(c *clustertest.Cluster) {
			set := c.Flavor("f", "", "")
			set.Object["spec"] = map[string]any{"nodeTaints": []any{map[string]any{"key": "spot", "value": "true", "effect": "NoSchedule"}}}
			c.ClusterQueue("q", "", gpus("8"))
		}, []PodSet{podSet("w", list(gpu, "1"))}, "w suits none of f"},
		{"a taint that is tolerated", func(c *clustertest.Cluster) {
			set := c.Flavor("f", "", "")
			set.Object["spec"] = map[string]any{"nodeTaints": []any{map[string]any{"key": "spot", "value": "true", "effect": "NoSchedule"}}}
			c.ClusterQueue("q", "", gpus("8"))
		}, []PodSet{podSet("w", list(gpu, "1"), func(p *corev1.PodSpec) { p.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })}, "map[w:[f]]"},
		{"in use", func(c *clustertest.Cluster) { c.ClusterQueue("q", "", gpus("16")); uses(c, "q", "12") }, []PodSet{podSet("w", list(gpu, "8"))}, "w requests 8 of 16 f (4 available)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			flavors, short := tree(tt.build).Available("q").Assign(tt.podSets...)
			got := fmt.Sprint(flavors)
			switch {
			case short == nil:
			case short.Unsuited:
				got = fmt.Sprintf("%s suits none of %s", short.PodSet, short.Flavor)
			case short.Never:
				got = fmt.Sprintf("%s requests %d of %d %s (never)", short.PodSet, short.Requested, short.Potential, short.Flavor)
			default:
				got = fmt.Sprintf("%s requests %d of %d %s (%d available)", short.PodSet, short.Requested, short.Potential, short.Flavor, short.Available)
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Which flavor it will be is not known: the labels that all of those have that may be are, and pods may tolerate what any of them does.
func TestInjected(t *testing.T) {
	a := tree(func(c *clustertest.Cluster) {
		for _, flavor := range []struct{ name, class string }{{"a", "h100"}, {"b", "h100"}, {"small", "a100"}} {
			c.Flavor(flavor.name, "class", flavor.class).Object["spec"] = map[string]any{"nodeLabels": map[string]any{"class": flavor.class, "pool": flavor.name},
				"tolerations": []any{map[string]any{"key": "pool", "value": flavor.name}}}
		}
		quota := func(flavor, nominal string) clustertest.Quota {
			return clustertest.Quota{Flavor: flavor, Resource: string(gpu), Nominal: nominal}
		}
		c.ClusterQueue("q", "", quota("a", "16"), quota("b", "16"), quota("small", "8"))
	}).Potential("q")
	for _, tt := range []struct{ gpus, want string }{{"16", "map[class:h100] 2"}, {"8", "map[] 3"}, {"0", "map[] 0"}} {
		got := a.Injected(podSet("w", clustertest.List(gpu, tt.gpus)))
		if got := fmt.Sprint(got.NodeLabels, len(got.Tolerations)); got != tt.want {
			t.Errorf("%s GPUs: got %s, want %s", tt.gpus, got, tt.want)
		}
	}
}

// Resources without a quota are reported once each, devices first, less pods, which count only where they are limited.
func TestUndeclared(t *testing.T) {
	a := tree(func(c *clustertest.Cluster) { c.ClusterQueue("q", "", gpus("16")) }).Available("q")
	got := a.Undeclared(podSet("a", clustertest.List("cpu", "1", gpu, "1", "pods", "1")), podSet("b", clustertest.List("cpu", "2", "memory", "0", "amd.com/gpu", "1", "ephemeral-storage", "1Gi")))
	var names []string
	for _, s := range got {
		names = append(names, s.PodSet+" "+string(s.Name))
	}
	if want := []string{"b amd.com/gpu", "a cpu", "b ephemeral-storage"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// What is in use does not count for the potential, and taking leaves the tree as it was.
func TestPotential(t *testing.T) {
	tr := tree(func(c *clustertest.Cluster) { c.ClusterQueue("q", "", gpus("16")); uses(c, "q", "12") })
	for range 2 {
		if _, short := tr.Potential("q").Assign(podSet("w", clustertest.List(gpu, "16"))); short != nil {
			t.Errorf("got %+v", short)
		}
		if flavors, short := tr.Available("q").Assign(podSet("w", clustertest.List(gpu, "4"))); short != nil || flavors["w"][0] != "f" {
			t.Errorf("got %v %+v", flavors, short)
		}
	}
	if got := tr.Available("unknown"); len(got.quotas) != 0 {
		t.Errorf("got %+v", got.quotas)
	}
}

// What a Workload is admitted with is what it then uses.
func TestAdmission(t *testing.T) {
	c := clustertest.New()
	c.ClusterQueue("q", "", clustertest.Quota{Flavor: "small", Resource: gpu, Nominal: "4"}, clustertest.Quota{Flavor: "large", Resource: gpu, Nominal: "16"},
		clustertest.Quota{Flavor: "any", Resource: "cpu", Nominal: "100", Group: 1})
	objects := c.S.Custom
	all := Objects{Queues: objects[kueue.Kind("ClusterQueue")]}
	podSets := []PodSet{podSet("Chief", clustertest.List(gpu, "2", "cpu", "4")), podSet("Worker", clustertest.List(gpu, "8", "cpu", "500m", "memory", "1Gi"))}
	u := c.Workload("gang", "lq", 0)
	u.Object["status"] = map[string]any{"admission": New(all).Admission("q", podSets...)}
	if AdmittedTo(u) != "q" || Usage(u, "small", gpu) != 2 || Usage(u, "large", gpu) != 8 || Usage(u, "any", "cpu") != 4500 {
		t.Errorf("got %v", u.Object["status"])
	}
	all.Workloads = append(all.Workloads, u)
	if got := New(all).Admission("q", podSet("Worker", clustertest.List(gpu, "9"))); got != nil {
		t.Errorf("admitted to what is used: %v", got)
	}
}
