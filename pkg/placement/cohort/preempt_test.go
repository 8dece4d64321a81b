package cohort

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/internal/clustertest"
)

// policy sets whom the Workloads of a queue preempt: the fields of spec.preemption, in pairs.
func policy(u *unstructured.Unstructured, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		clustertest.Set(pairs[i+1], "spec", "preemption", pairs[i].(string))(u.Object)
	}
}

// runs lets a job of some priority use GPUs of a queue; it was made some time ago, and admitted when it was.
func runs(c *clustertest.Cluster, job, queue, n string, priority int64, ago time.Duration) *unstructured.Unstructured {
	u := c.Workload(job, "lq", ago)
	clustertest.Admit(u, queue, "f", n)
	clustertest.Set(priority, "spec", "priority")(u.Object)
	clustertest.Set([]any{clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", ago)}, "status", "conditions")(u.Object)
	return u
}

// unknown is that it is not found out who is preempted.
var unknown = []string{"unknown"}

// twoFlavors has queue q of two flavors: in the first a of its own queue has what is needed, in the second b of another one.
func twoFlavors(c *clustertest.Cluster) *unstructured.Unstructured {
	q := c.ClusterQueue("q", "pool", gpus("8"), clustertest.Quota{Flavor: "g", Resource: gpu, Nominal: "8"})
	policy(q, "withinClusterQueue", LowerPriority, "reclaimWithinCohort", Any)
	c.ClusterQueue("other", "pool", clustertest.Quota{Flavor: "g", Resource: gpu, Nominal: "0"})
	runs(c, "a", "q", "8", 0, time.Hour)
	clustertest.Admit(c.Workload("b", "lq", time.Hour), "other", "g", "8")
	return q
}

func TestVictims(t *testing.T) {
	const lower, newer, anyOne = LowerPriority, LowerOrNewerEqual, Any
	tests := []struct {
		name  string
		needs string
		build func(c *clustertest.Cluster)
		want  []string
	}{
		{"never", "8", func(c *clustertest.Cluster) {
			c.ClusterQueue("q", "", gpus("16"))
			runs(c, "a", "q", "16", 0, time.Hour)
		}, nil},
		{"a lower priority", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "", gpus("16")), "withinClusterQueue", lower)
			runs(c, "a", "q", "16", 0, time.Hour)
		}, []string{"a withinClusterQueue LowerPriority"}},
		{"no equal one", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "", gpus("16")), "withinClusterQueue", lower)
			runs(c, "a", "q", "16", 10, 0)
		}, nil},
		{"a newer equal one, but not an older", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "", gpus("16")), "withinClusterQueue", newer)
			runs(c, "old", "q", "8", 10, time.Hour)
			runs(c, "new", "q", "8", 10, time.Second)
		}, []string{"new withinClusterQueue LowerOrNewerEqualPriority"}},
		{"the lowest first, and no more than are needed", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "", gpus("16")), "withinClusterQueue", lower)
			runs(c, "b", "q", "8", 5, time.Hour)
			runs(c, "a", "q", "8", 1, time.Hour)
		}, []string{"a withinClusterQueue LowerPriority"}},
		{"one that is too small is spared again", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "", gpus("12")), "withinClusterQueue", lower)
			runs(c, "small", "q", "2", 1, time.Hour)
			runs(c, "large", "q", "10", 5, time.Hour)
		}, []string{"large withinClusterQueue LowerPriority"}},
		{"those together are not enough", "16", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "", gpus("16")), "withinClusterQueue", lower)
			runs(c, "a", "q", "8", 0, time.Hour)
			runs(c, "b", "q", "8", 20, time.Hour)
		}, nil},
		{"its own quota is taken back from who borrows it, whatever the priority", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "pool", gpus("8")), "reclaimWithinCohort", anyOne)
			c.ClusterQueue("other", "pool", gpus("8"))
			runs(c, "a", "other", "16", 100, time.Hour)
		}, []string{"a reclaimWithinCohort Any"}},
		{"only from a lower priority", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "pool", gpus("8")), "reclaimWithinCohort", lower)
			c.ClusterQueue("other", "pool", gpus("8"))
			runs(c, "a", "other", "16", 100, time.Hour)
		}, nil},
		{"not from who borrows nothing, but from who does", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "pool", gpus("8")), "reclaimWithinCohort", anyOne)
			c.ClusterQueue("other", "pool", gpus("8"))
			c.ClusterQueue("third", "pool", gpus("0"))
			runs(c, "a", "other", "8", 0, time.Hour)
			runs(c, "b", "third", "8", 5, time.Hour)
		}, []string{"b reclaimWithinCohort Any"}},
		{"of two flavors the one of which nothing of the own queue goes", "8", func(c *clustertest.Cluster) {
			twoFlavors(c)
		}, []string{"b reclaimWithinCohort Any"}},
		{"the first flavor, if the queue wants that", "8", func(c *clustertest.Cluster) {
			clustertest.Set("Preempt", "spec", "flavorFungibility", "whenCanPreempt")(twoFlavors(c).Object)
		}, []string{"a withinClusterQueue LowerPriority"}},
		{"a queue that weighs preemption against borrowing", "8", func(c *clustertest.Cluster) {
			clustertest.Set("TryNextFlavor", "spec", "flavorFungibility", "whenCanBorrow")(twoFlavors(c).Object)
		}, unknown},
		{"more than are tried", "300", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "", gpus("300")), "withinClusterQueue", lower)
			for i := range 300 {
				runs(c, fmt.Sprint("a", i), "q", "1", 0, time.Hour)
			}
		}, unknown},
		{"not to borrow", "12", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "pool", gpus("8")), "reclaimWithinCohort", anyOne)
			c.ClusterQueue("other", "pool", gpus("4"))
			c.ClusterQueue("third", "pool", gpus("8"))
			runs(c, "a", "other", "16", 0, time.Hour)
		}, nil},
		{"to borrow, of a lower priority", "12", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "pool", gpus("8")), "reclaimWithinCohort", anyOne, "borrowWithinCohort", map[string]any{"policy": lower})
			c.ClusterQueue("other", "pool", gpus("4"))
			c.ClusterQueue("third", "pool", gpus("8"))
			runs(c, "a", "other", "16", 0, time.Hour)
		}, []string{"a borrowWithinCohort LowerPriority"}},
		{"to borrow, up to a priority", "12", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "pool", gpus("8")), "reclaimWithinCohort", anyOne, "borrowWithinCohort", map[string]any{"policy": lower, "maxPriorityThreshold": int64(3)})
			c.ClusterQueue("other", "pool", gpus("4"))
			c.ClusterQueue("third", "pool", gpus("8"))
			runs(c, "a", "other", "16", 5, time.Hour)
		}, nil},
		{"those that go already come first", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "", gpus("16")), "withinClusterQueue", lower)
			runs(c, "a", "q", "8", 0, time.Hour)
			u := runs(c, "goes", "q", "8", 5, time.Hour)
			clustertest.Set([]any{clustertest.Condition("Evicted", "True", "Preempted", "", time.Second)}, "status", "conditions")(u.Object)
		}, []string{"goes withinClusterQueue LowerPriority"}},
		{"nothing of another flavor", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "", gpus("16"), clustertest.Quota{Flavor: "g", Resource: gpu, Nominal: "4"}), "withinClusterQueue", lower)
			u := c.Workload("a", "lq", time.Hour)
			clustertest.Admit(u, "q", "g", "4")
			runs(c, "b", "q", "16", 20, time.Hour)
		}, nil},
		{"the second flavor, where the first gives nothing", "4", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "", gpus("16"), clustertest.Quota{Flavor: "g", Resource: gpu, Nominal: "4"}), "withinClusterQueue", lower)
			u := c.Workload("a", "lq", time.Hour)
			clustertest.Admit(u, "q", "g", "4")
			runs(c, "b", "q", "16", 20, time.Hour)
		}, []string{"a withinClusterQueue LowerPriority"}},
		{"of a cohort below, whoever is nearer to the quota", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "near", gpus("0")), "reclaimWithinCohort", anyOne)
			c.ClusterQueue("far", "lake", gpus("0"))
			c.Cohort("near", "sea", gpus("8"))
			c.Cohort("lake", "sea")
			c.Cohort("sea", "")
			runs(c, "a", "far", "8", 100, time.Hour)
		}, []string{"a reclaimWithinCohort Any"}},
		{"cohorts in a circle", "8", func(c *clustertest.Cluster) {
			policy(c.ClusterQueue("q", "a", gpus("8")), "reclaimWithinCohort", anyOne, "withinClusterQueue", lower)
			c.ClusterQueue("other", "b", gpus("0"))
			c.Cohort("a", "b")
			c.Cohort("b", "a")
			runs(c, "x", "other", "8", 0, time.Hour)
		}, unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := tree(tt.build)
			before := tr.Available("q").quotas
			set := PodSet{Name: "Worker", Requests: clustertest.List(gpu, tt.needs)}
			victims, complete := tr.Victims(Preemptor{Queue: "q", Priority: 10, Since: clustertest.Now.Add(-time.Minute), Policy: tr.PolicyOf("q")}, set)
			var got []string
			if !complete {
				got = unknown
			}
			for _, v := range victims {
				got = append(got, v.Workload.GetOwnerReferences()[0].Name+" "+v.Rule)
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if after := tr.Available("q").quotas; fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("the search has changed what is available: %v, then %v", before, after)
			}
		})
	}
}

// A flavor that has enough is named with what keeps the pods off it, and the change of that lets them on it.
func TestExclusions(t *testing.T) {
	build := func(c *clustertest.Cluster) {
		c.Flavor("h100", "class", "h100")
		spot := c.Flavor("spot", "class", "a100")
		clustertest.Set([]any{map[string]any{"key": "spot", "value": "true", "effect": "NoSchedule"}}, "spec", "nodeTaints")(spot.Object)
		c.ClusterQueue("q", "", clustertest.Quota{Flavor: "h100", Resource: gpu, Nominal: "8"}, clustertest.Quota{Flavor: "spot", Resource: gpu, Nominal: "16"})
	}
	affinity := func(operator corev1.NodeSelectorOperator, values ...string) corev1.PodSpec {
		return corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "class", Operator: operator, Values: values}}}}}}}}
	}
	for name, tt := range map[string]struct {
		spec  corev1.PodSpec
		needs string
		rules []string // what keeps the pods off flavor spot; none if it is no way out
	}{
		"a taint":                        {corev1.PodSpec{}, "16", []string{"tolerations spot"}},
		"a selector and a taint":         {corev1.PodSpec{NodeSelector: map[string]string{"class": "h100", "disk": "ssd"}}, "16", []string{"nodeSelector class", "tolerations spot"}},
		"an affinity":                    {affinity(corev1.NodeSelectorOpIn, "h100"), "16", []string{"nodeAffinity class", "tolerations spot"}},
		"an affinity that excludes it":   {affinity(corev1.NodeSelectorOpNotIn, "a100"), "16", []string{"nodeAffinity class", "tolerations spot"}},
		"it has not enough, either":      {corev1.PodSpec{}, "17", nil},
		"it may be used":                 {corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}, "16", nil},
		"the affinity allows it":         {affinity(corev1.NodeSelectorOpExists), "16", []string{"tolerations spot"}},
		"the selector is no flavor's":    {corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}, "16", []string{"tolerations spot"}},
		"the selector is of that flavor": {corev1.PodSpec{NodeSelector: map[string]string{"class": "a100"}}, "16", []string{"tolerations spot"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := PodSet{Name: "Worker", Spec: tt.spec, Requests: clustertest.List(gpu, tt.needs)}
			var rules []string
			for _, x := range tree(build).Potential("q").Exclusions(gpu, "Worker", set) {
				if x.Flavor != "spot" {
					t.Errorf("flavor %s is a way out", x.Flavor)
				}
				for _, r := range x.Rules["Worker"] {
					rules = append(rules, r.Field+" "+r.Key+r.Taint.Key)
				}
			}
			if !slices.Equal(rules, tt.rules) {
				t.Errorf("got %v, want %v", rules, tt.rules)
			}
		})
	}
}
