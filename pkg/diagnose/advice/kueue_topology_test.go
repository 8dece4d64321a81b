package advice_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// The rule by which Kueue keeps all members in one rack can be made a preference, and nodes help that are in the same.
func TestKueueTopologyIsRelaxed(t *testing.T) {
	const required = "kueue.x-k8s.io/podset-required-topology"
	c := clustertest.New()
	c.Nodes(4, 8).LocalQueue("lq", "cq")
	c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "64"})
	for i, n := range c.S.Nodes {
		n.Labels["cloud/rack"] = fmt.Sprint("r", i/2)
	}
	c.Add(clustertest.Gang{Name: "gang", Workers: 4, GPUs: 8, Missing: 4, NoGroup: true, Job: func(j map[string]any) {
		clustertest.Set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")(j)
		clustertest.Set(true, "spec", "runPolicy", "suspend")(j)
		clustertest.Set(map[string]any{required: "cloud/rack"}, "spec", "tfReplicaSpecs", "Worker", "template", "metadata", "annotations")(j)
	}})
	c.Workload("gang", "lq", time.Minute)
	base, found := look(t, c, advice.Options{})
	if base.Primary == nil || base.Primary.Code != answer.TooBig {
		t.Fatalf("found %+v", base.Primary)
	}
	relaxed, added := false, false
	for _, a := range found.Actions {
		relaxed = relaxed || a.Kind == answer.Relax && strings.Contains(a.Text, "prefer one cloud/rack")
		added = added || a.Kind == answer.AddNodes && strings.Contains(a.How, "cloud/rack=r")
	}
	if !relaxed || !added {
		t.Errorf("the rule goes %t, nodes of the rack %t: %+v", relaxed, added, found.Actions)
	}
}

// A job of several roles has such a rule for each.
func TestKueueTopologyOfARoleIsRelaxed(t *testing.T) {
	c := clustertest.New()
	c.Nodes(4, 8).LocalQueue("lq", "cq")
	c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "64"})
	label(c, "cloud/rack", "r0", "r0", "r1", "r1")
	c.Add(clustertest.Gang{Name: "gang", Workers: 3, GPUs: 8, Missing: 3, NoGroup: true, More: []clustertest.Role{{Name: "PS", Replicas: 1, Missing: 1}}, Job: func(j map[string]any) {
		clustertest.Set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")(j)
		clustertest.Set(true, "spec", "runPolicy", "suspend")(j)
		clustertest.Set(map[string]any{"kueue.x-k8s.io/podset-required-topology": "cloud/rack"}, "spec", "tfReplicaSpecs", "Worker", "template", "metadata", "annotations")(j)
	}})
	c.Workload("gang", "lq", time.Minute)
	base, found := look(t, c, advice.Options{})
	if base.Primary == nil || base.Primary.Code != answer.TooBig {
		t.Fatalf("found %+v", base.Primary)
	}
	if relaxed := offers(found.Actions, answer.Relax); len(relaxed) != 1 {
		t.Errorf("to relax: %q", relaxed)
	}
	for _, fewer := range offers(found.Actions, answer.Fewer) {
		if fewer != "Worker.replicas=2" { // which have room in one rack
			t.Errorf("fewer: %s", fewer)
		}
	}
}

// The node that Kueue has assigned to a member is no rule of the job: admitted again, it is assigned to others, and no rule has to go for that.
func TestKueueAssignsAgain(t *testing.T) {
	c := clustertest.New()
	c.Nodes(3, 8).LocalQueue("lq", "cq")
	c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "16"})
	c.S.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	c.Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 8, Nodes: []string{"n1"}, NoGroup: true, Pod: func(i int, p *corev1.Pod) {
		p.Labels["kueue.x-k8s.io/podset"] = "worker"
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: []string{"n1", "n2"}[i]}
	}, Job: clustertest.Set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")})
	u := c.Workload("gang", "lq", time.Hour)
	clustertest.Admit(u, "cq", "f", "16")
	sets := u.Object["status"].(map[string]any)["admission"].(map[string]any)["podSetAssignments"].([]any)
	sets[0].(map[string]any)["topologyAssignment"] = map[string]any{"levels": []any{corev1.LabelHostname}}
	_, found := look(t, c, advice.Options{})
	if len(found.Actions) == 0 || !strings.Contains(found.Actions[0].Text, "evict Workload tfjob-gang and admit it again") || strings.Count(found.Actions[0].Command, "\n") != 2 {
		t.Errorf("offered %+v", found.Actions)
	}
	if relaxed := offers(found.Actions, answer.Relax); len(relaxed) > 0 {
		t.Errorf("to relax: %q", relaxed)
	}
}

// Where a PodGroup states more than its members request, which is there, no size of the gang is offered but that what is stated is lowered.
func TestOverstatedIsLowered(t *testing.T) {
	c := clustertest.New()
	c.Queue("q", "Open", nil)
	c.Nodes(4, 8).Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 8, Missing: 2, Volcano: "q", Group: clustertest.Set("64", "spec", "minResources", "nvidia.com/gpu")})
	base, found := look(t, c, advice.Options{})
	if base.Primary == nil || base.Primary.Code != answer.QueueQuota || len(found.Actions) != 1 || found.Actions[0].Kind != answer.Fix {
		t.Fatalf("found %+v, offered %+v", base.Primary, found.Actions)
	}
}

// How long Kueue lets a job run is when it ends at the latest, by the Workload that counts: what was left of an earlier one is not.
func TestExecutionTimeIsAnEnd(t *testing.T) {
	c := clustertest.New()
	c.Nodes(4, 8).LocalQueue("lq", "cq")
	c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "16"})
	c.Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, NoGroup: true})
	u := c.Workload("other", "lq", 2*time.Hour)
	clustertest.Admit(u, "cq", "f", "8")
	clustertest.Set(int64(7200), "spec", "maximumExecutionTimeSeconds")(u.Object)
	earlier := u.DeepCopy()
	earlier.SetName("tfjob-other-replaced")
	earlier.SetUID("replaced")
	clustertest.Set(int64(5400), "spec", "maximumExecutionTimeSeconds")(earlier.Object)
	clustertest.Set([]any{clustertest.Condition("Admitted", "True", "Admitted", "", time.Hour), clustertest.Condition("Finished", "True", "WorkloadSliceReplaced", "", time.Minute)},
		"status", "conditions")(earlier.Object)
	c.Object(earlier.Object)
	c.Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 8, Missing: 2, NoGroup: true, Job: func(j map[string]any) {
		clustertest.Set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")(j)
		clustertest.Set(true, "spec", "runPolicy", "suspend")(j)
	}})
	c.Workload("gang", "lq", time.Minute)
	_, found := look(t, c, advice.Options{})
	for _, a := range found.Actions {
		if a.Kind == answer.Wait {
			if a.ETA == nil || !a.ETA.Equal(clustertest.Now.Add(time.Hour)) || !strings.Contains(a.ETASource, "maximumExecutionTimeSeconds") {
				t.Errorf("ends at %v by %s", a.ETA, a.ETASource)
			}
			return
		}
	}
	t.Errorf("nothing is waited for: %+v", found.Actions)
}

// A service whose pods Kueue has admitted one by one gives their quota back when it gives way.
func TestServiceGivesQuotaBack(t *testing.T) {
	c := clustertest.New()
	c.Nodes(4, 8).LocalQueue("lq", "cq")
	c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "16"})
	c.Serves("llm", 8, "n1")
	p := c.S.Pods[len(c.S.Pods)-1]
	u := c.Workload("llm", "lq", time.Hour)
	u.SetNamespace(p.Namespace)
	refs := u.GetOwnerReferences()
	refs[0].APIVersion, refs[0].Kind, refs[0].Name, refs[0].UID = "v1", "Pod", p.Name, p.UID
	u.SetOwnerReferences(refs)
	clustertest.Admit(u, "cq", "f", "8")
	c.Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 8, Missing: 2, NoGroup: true, Job: func(j map[string]any) {
		clustertest.Set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")(j)
		clustertest.Set(true, "spec", "runPolicy", "suspend")(j)
	}})
	c.Workload("gang", "lq", time.Minute)
	_, found := look(t, c, advice.Options{})
	if got := offers(found.Actions, answer.Evict); len(got) != 1 || !strings.Contains(got[0], "serving/llm") {
		t.Errorf("offered %q of %+v", got, found.Actions)
	}
}
