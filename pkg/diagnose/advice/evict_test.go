package advice_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func priority(n int32) func(*clustertest.Gang) {
	return spec(func(p *corev1.PodSpec) { p.Priority = &n })
}

func TestEvict(t *testing.T) {
	runCases(t, answer.Evict, []testCase{
		{"lower priority", func(c *clustertest.Cluster) { c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, priority(10))) }, []string{"jobs=[research/a]"}},
		{"equal priority", func(c *clustertest.Cluster) { c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8)) }, nil},
		{"higher priority", func(c *clustertest.Cluster) { c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, priority(-1))) }, nil},
		{"lower priority, but the gang may not preempt", func(c *clustertest.Cluster) {
			never, high := corev1.PreemptNever, int32(10)
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) { p.Priority, p.PreemptionPolicy = &high, &never })))
		}, nil},
		{"a service never ends", func(c *clustertest.Cluster) { c.Nodes(1, 8).Serves("web", 8, "n1").Add(gangOf(1, 8)) }, []string{"jobs=[serving/web]"}},
		{"its own Deployment would end it, too", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8)).Serves("web", 8, "n1")
			delete(c.S.Custom, schema.GroupKind{Group: "kubeflow.org", Kind: "TFJob"})
			was := c.S.Pods[1]
			was.Namespace, c.S.Pods[0].Labels["pod-template-hash"] = "team", "def"
			c.S.Pods[0].OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-def", UID: "new", Controller: was.OwnerReferences[0].Controller}}
		}, nil},
		{"what the cluster runs on stays", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Serves("coredns", 8, "n1").Add(gangOf(1, 8))
			for _, p := range c.S.Pods {
				if p.Namespace == "serving" {
					critical := int32(2000000000)
					p.Spec.Priority = &critical
				}
			}
		}, nil},
		{"a service that holds nothing of use", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 0, "n1").Runs("a", 8, "n1", "n2").Add(gangOf(1, 8))
		}, nil},
		{"the least important first, and no more than needed", func(c *clustertest.Cluster) {
			job := func(name, node string, n int32) {
				c.Add(clustertest.Gang{Namespace: "research", Name: name, Workers: 1, GPUs: 8, Nodes: []string{node}, Spec: func(p *corev1.PodSpec) { p.Priority = &n }})
			}
			c.Nodes(2, 8)
			job("a", "n1", 5)
			job("b", "n2", 1)
			c.Add(gangOf(1, 8, priority(10)))
		}, []string{"jobs=[research/b]", "jobs=[research/a]"}},
		{"a DaemonSet stays", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Daemon("agent", "n1", "90")
			c.Add(gangOf(1, 8))
		}, nil},
	})
}

// Each kind is made to leave in the gentlest way that it has.
func TestEvictCommands(t *testing.T) {
	yes := true
	foreign := func(apiVersion, kind string) func(c *clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "x-0", UID: "x-0"}}
			if kind != "" {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: "a", UID: "owner", Controller: &yes}}
			}
			p.Spec.NodeName, p.Spec.RestartPolicy, p.Status.Phase = "n1", corev1.RestartPolicyAlways, corev1.PodRunning
			p.Spec.Containers = []corev1.Container{{Name: "x", Resources: corev1.ResourceRequirements{Requests: clustertest.List("nvidia.com/gpu", "8")}}}
			c.Put(p)
		}
	}
	job := func(kind string, change ...func(*clustertest.Gang)) func(c *clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			g := clustertest.Gang{Namespace: "research", Name: "a", Kind: kind, Workers: 1, GPUs: 8, Nodes: []string{"n1"}, NoGroup: true, Age: time.Hour}
			for _, f := range change {
				f(&g)
			}
			c.Add(g)
		}
	}
	const suspend = ` --type=merge -p '{"spec":{"runPolicy":{"suspend":true}}}'`
	tests := map[string]struct {
		hold func(*clustertest.Cluster)
		want string
	}{
		"Deployment":  {func(c *clustertest.Cluster) { c.Serves("a", 8, "n1") }, "kubectl -n serving scale deployment/a --replicas=0"},
		"StatefulSet": {foreign("apps/v1", "StatefulSet"), "kubectl -n research scale statefulset/a --replicas=0"},
		"TFJob":       {job("TFJob"), "kubectl -n research patch tfjob a" + suspend},
		"PyTorchJob":  {job("PyTorchJob"), "kubectl -n research patch pytorchjob a" + suspend},
		"MPIJob":      {job("MPIJob"), "kubectl -n research patch mpijob a" + suspend},
		"batch Job":   {job("Job"), `kubectl -n research patch job a --type=merge -p '{"spec":{"suspend":true}}'`},
		"left over": {job("TFJob", func(g *clustertest.Gang) {
			g.Job = func(u map[string]any) {
				u["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Succeeded", "status": "True"}}
			}
		}), "kubectl -n research delete pod a-worker-0"},
		"a job that Kueue runs": {func(c *clustertest.Cluster) {
			job("TFJob")(c)
			for name, finished := range map[string]string{"before-a": "True", "wl-a": "False"} { // the one that is left over from before the job was changed does not count
				c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": map[string]any{"namespace": "research", "name": name,
					"ownerReferences": []any{map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "a", "uid": "TFJob:research/a", "controller": true}}},
					"status": map[string]any{"conditions": []any{map[string]any{"type": "Finished", "status": finished}}}})
			}
		}, `kubectl -n research patch workload.kueue.x-k8s.io wl-a --type=merge -p '{"spec":{"active":false}}'`},
		"a service of several gangs that Kueue runs": {func(c *clustertest.Cluster) {
			job("LeaderWorkerSet")(c)
			for _, index := range []string{"0", "1"} {
				c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": map[string]any{"namespace": "research", "name": "wl-" + index, "annotations": map[string]any{"kueue.x-k8s.io/component-workload-index": index},
					"ownerReferences": []any{map[string]any{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "a", "uid": "LeaderWorkerSet:research/a", "controller": true}}}})
			}
		}, "kubectl -n research scale leaderworkerset/a --replicas=0"},
		"Volcano's Job is not Kubernetes' own": {foreign("batch.volcano.sh/v1alpha1", "Job"), "kubectl -n research delete job.batch.volcano.sh a"},
		"RayCluster":                           {foreign("ray.io/v1", "RayCluster"), `kubectl -n research patch raycluster a --type=merge -p '{"spec":{"suspend":true}}'`},
		"SparkApplication": {func(c *clustertest.Cluster) {
			foreign("sparkoperator.k8s.io/v1beta2", "SparkApplication")(c)
			c.S.Pods[0].Spec.RestartPolicy = corev1.RestartPolicyNever
		}, "kubectl -n research delete sparkapplication.sparkoperator.k8s.io a"},
		"a service that an operator runs, with which data may go": {foreign("kubernetes.dask.org/v1", "DaskCluster"), "kubectl -n research edit daskcluster.kubernetes.dask.org a"},
		"a pod": {foreign("", ""), "kubectl -n research delete pod x-0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New().Nodes(1, 8)
			tt.hold(c)
			_, found := look(t, c.Add(gangOf(1, 8, priority(10))), advice.Options{})
			for _, a := range found.Actions {
				if a.Kind != answer.Evict {
					continue
				}
				if a.Command != tt.want || a.Cost == "" || a.By != answer.Admin {
					t.Errorf("by %s, cost %q\ngot  %s\nwant %s", a.By, a.Cost, a.Command, tt.want)
				}
				return
			}
			t.Errorf("no eviction among %+v", found.Actions)
		})
	}
}

// Taking room from others is the last that is thought of.
func TestEvictIsLast(t *testing.T) {
	c := clustertest.New().Nodes(3, 8).Runs("a", 8, "n1").Serves("web", 8, "n2")
	cordon(c, 2)
	_, found := look(t, c.Add(gangOf(2, 4, priority(10), func(g *clustertest.Gang) { g.Workers, g.GPUs = 2, 8 })), advice.Options{})
	var kinds []string
	for _, a := range found.Actions {
		kinds = append(kinds, string(a.Kind))
	}
	if all := strings.Join(kinds, " "); !strings.HasSuffix(all, "evict") || strings.Index(all, "evict") < strings.LastIndex(all, "uncordon") || !strings.Contains(all, "addNodes") {
		t.Errorf("got %s", all)
	}
}

// What keeps the members that a gang does without can be taken away, too; no edit that would start those again that run is offered.
func TestMembersThatAreDoneWithout(t *testing.T) {
	c := clustertest.New().Nodes(2, 8).Serves("web", 8, "n2").Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Kind, g.NoGroup, g.Nodes = "Job", true, []string{"n1"} }))
	r, found := look(t, c, advice.Options{})
	if got := offers(found.Actions, answer.Evict); r.Verdict != answer.Running || r.Behind == nil || len(got) != 1 || got[0] != "jobs=[serving/web]" {
		t.Errorf("%s: %q", r.Verdict, got)
	}
	for _, kind := range []answer.ActionKind{answer.Reshape, answer.Trim, answer.Fewer, answer.Relax} {
		if got := offers(found.Actions, kind); len(got) > 0 {
			t.Errorf("%s is offered: %q", kind, got)
		}
	}
}
