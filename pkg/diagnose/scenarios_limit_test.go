package diagnose

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// namedQuota adds a ResourceQuota of one resource to namespace team.
func namedQuota(c *clustertest.Cluster, name, key, hard, used string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec:   corev1.ResourceQuotaSpec{Hard: clustertest.List(key, hard)},
		Status: corev1.ResourceQuotaStatus{Hard: clustertest.List(key, hard), Used: clustertest.List(key, used)}}
	c.Put(q)
	return q
}

func podLimit(c *clustertest.Cluster, most ...string) {
	c.Put(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "caps"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod, Max: clustertest.List(most...)}}}})
}

// unlimited has containers request cpu and memory without limits.
func unlimited(p *corev1.PodSpec) {
	for i := range p.Containers {
		delete(p.Containers[i].Resources.Limits, corev1.ResourceCPU)
		delete(p.Containers[i].Resources.Limits, corev1.ResourceMemory)
	}
}

func limitScenarios() []scenario {
	gpus := func(n string) clustertest.Quota {
		return clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: n}
	}
	return []scenario{
		{name: "a limit a pod, and one container", code: answer.LimitRange, exit: 4, offers: []answer.ActionKind{answer.Trim}, wantText: []string{"4 cpu a pod"}, build: func(c *clustertest.Cluster) {
			podLimit(c, "cpu", "4")
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
		}},
		{name: "a limit a pod, and a sidecar", code: answer.LimitRange, exit: 4, offers: []answer.ActionKind{answer.Trim}, wantText: []string{"12", "tensorflow"}, build: func(c *clustertest.Cluster) {
			podLimit(c, "cpu", "10")
			c.Nodes(2, 8).Add(with(with(waiting(2, 8), none), spec(func(p *corev1.PodSpec) {
				list := clustertest.List("cpu", "4", "memory", "1Gi")
				p.Containers = append(p.Containers, corev1.Container{Name: "logs", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}})
			})))
		}},
		{name: "a limit a pod, and no limit", code: answer.LimitRange, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"allows a limit of at most 1Ti memory a pod, and it has no limit", "limit memory to 64Gi"}, build: func(c *clustertest.Cluster) {
			podLimit(c, "memory", "1Ti")
			c.Nodes(2, 8).Add(with(with(waiting(2, 8), none), spec(unlimited)))
		}},
		{name: "a ratio to the request, and no limit", code: answer.LimitRange, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"at most 2 times the request, and tensorflow has no limit", "limit cpu to 8"}, build: func(c *clustertest.Cluster) {
			c.Put(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "caps"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: clustertest.List("cpu", "2")}}}})
			c.Nodes(2, 8).Add(with(with(waiting(2, 8), none), spec(unlimited)))
		}},
		{name: "a quota of pods", code: answer.NSQuotaTooSmall, exit: 6, offers: []answer.ActionKind{answer.Quota, answer.Fewer}, wantText: []string{"3", "pods"}, build: func(c *clustertest.Cluster) {
			namedQuota(c, "few", "pods", "3", "0")
			c.Nodes(4, 8).Add(with(waiting(4, 8), none))
		}},
		{name: "a quota for another priority", code: answer.Fits, exit: 3, notText: []string{"NS_QUOTA"}, build: func(c *clustertest.Cluster) {
			namedQuota(c, "gold", "requests.nvidia.com/gpu", "0", "0").Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
				{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"gold"}}}}
			c.Nodes(2, 8).Add(with(waiting(2, 8), young))
		}},
		{name: "two quotas at once", code: answer.NSQuotaTooSmall, exit: 6, wantText: []string{"gpus", "memory"}, build: func(c *clustertest.Cluster) {
			namedQuota(c, "gpus", "requests.nvidia.com/gpu", "8", "0")
			namedQuota(c, "memory", "requests.memory", "100Gi", "0")
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
		}},
		{name: "a quota of memory that a smaller request meets", code: answer.NSQuotaTooSmall, exit: 6, offers: []answer.ActionKind{answer.Quota, answer.Fewer, answer.Trim}, wantText: []string{"50Gi"}, build: func(c *clustertest.Cluster) {
			namedQuota(c, "memory", "requests.memory", "100Gi", "0")
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
		}},
		{name: "a queue short of cpu while devices are left", code: answer.QueueQuota, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.Quota, answer.Trim}, wantText: []string{"queue q has 24 of 32 cpu left"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": "64", "cpu": "32"})
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Volcano: "q"}).
				Add(with(with(waiting(2, 8), inQueue("q")), func(g *clustertest.Gang) { g.CPU = "16" }))
		}},
		{name: "a queue that is closing", code: answer.QueueClosed, exit: 5, wantText: []string{"Closing"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Closing", nil)
			c.Nodes(2, 8).Add(with(waiting(2, 8), inQueue("q")))
		}},
		{name: "KAI: the department is full", code: answer.QueueQuota, exit: 3, offers: []answer.ActionKind{answer.Quota}, wantText: []string{"queue department", "8 of 16 GPUs"}, build: func(c *clustertest.Cluster) {
			queue := func(name, parent string, limit int64) {
				c.Object(map[string]any{"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": map[string]any{"name": name},
					"spec": map[string]any{"parentQueue": parent, "resources": map[string]any{"gpu": map[string]any{"quota": int64(-1), "limit": limit}}}})
			}
			queue("department", "", 16)
			queue("mine", "department", -1)
			queue("theirs", "department", -1)
			c.Schedules("kai-scheduler").GangScheduler("")
			kai := func(queue string) func(*clustertest.Gang) {
				return func(g *clustertest.Gang) { g.Dialect, g.Scheduler, g.Queue = "kai", "kai-scheduler", queue }
			}
			c.Nodes(4, 8).Add(with(clustertest.Gang{Namespace: "research", Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}}, kai("theirs"))).Add(with(waiting(2, 8), kai("mine")))
		}},
		{name: "Kueue: a sister that lends little", code: answer.QueueTooSmall, exit: 6, offers: []answer.ActionKind{answer.Quota}, never: []answer.ActionKind{answer.Wait}, wantText: []string{"12 GPUs in all"}, build: func(c *clustertest.Cluster) {
			sister := gpus("16")
			sister.Lend = "4"
			c.LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "pool", gpus("8"))
			c.ClusterQueue("sister", "pool", sister)
			c.Nodes(4, 8).Add(with(waiting(2, 8), kueued))
		}},
		{name: "Kueue: the flavor that the pods may use is full", code: answer.KueueQuota, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.Quota}, wantText: []string{"flavor h100"}, build: func(c *clustertest.Cluster) {
			c.LocalQueue("lq", "cq")
			c.Flavor("h100", "class", "h100")
			c.Flavor("a100", "class", "a100")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "h100", Resource: "nvidia.com/gpu", Nominal: "16"}, clustertest.Quota{Flavor: "a100", Resource: "nvidia.com/gpu", Nominal: "64"})
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}})
			label(c, "class", "h100", "h100", "h100", "a100")
			clustertest.Admit(c.Workload("other", "lq", time.Hour), "cq", "h100", "8")
			c.Add(with(with(waiting(2, 8), kueued), spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "h100"} })))
		}},
		{name: "Kueue: the namespace's own queue is on hold", code: answer.QueueClosed, exit: 5, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"LocalQueue lq"}, build: func(c *clustertest.Cluster) {
			set("HoldAndDrain", "spec", "stopPolicy")(c.LocalQueue("lq", "cq").Object)
			c.ClusterQueue("cq", "", gpus("64"))
			c.Nodes(2, 8).Add(with(waiting(2, 8), kueued))
		}},
	}
}
