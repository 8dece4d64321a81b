package diagnose

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// What one can do about it is offered only if a whole diagnosis finds that the gang starts then; these are ways that must pass.
func TestWaysOut(t *testing.T) {
	gpus := func(flavor, n string) clustertest.Quota {
		return clustertest.Quota{Flavor: flavor, Resource: "nvidia.com/gpu", Nominal: n}
	}
	ofKind := func(kind string) func(*clustertest.Gang) { return func(g *clustertest.Gang) { g.Kind = kind } }
	for _, s := range []scenario{
		{name: "a PriorityClass that has not been refused yet", code: answer.PriorityMissing, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"priorityClassName: gold instead of gpld", "create PriorityClass gpld"}, build: func(c *clustertest.Cluster) {
			c.Put(&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}})
			c.Nodes(2, 8).Add(with(with(waiting(2, 8), none), spec(func(p *corev1.PodSpec) { p.PriorityClassName = "gpld" })))
		}},
		{name: "a RuntimeClass that has not been refused yet", code: answer.RuntimeMissing, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"runtimeClassName: kata instead of kaat"}, build: func(c *clustertest.Cluster) {
			name := "kaat"
			c.Put(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}})
			c.Nodes(2, 8).Add(with(with(waiting(2, 8), none), spec(func(p *corev1.PodSpec) { p.RuntimeClassName = &name })))
		}},
		{name: "a limit far above its request", code: answer.LimitRange, exit: 4, never: []answer.ActionKind{answer.Wait}, wantText: []string{"at most 2 times the request"}, build: func(c *clustertest.Cluster) {
			c.Put(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "caps"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, MaxLimitRequestRatio: clustertest.List("cpu", "2")}}}})
			c.Nodes(2, 8).Add(with(with(waiting(2, 8), none), spec(func(p *corev1.PodSpec) { p.Containers[0].Resources.Limits["cpu"] = resource.MustParse("64") })))
		}},
		{name: "the minimum on the pods themselves", code: answer.MinMemberTooHigh, exit: 4, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			c.Schedules("default-scheduler").GangScheduler("")
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Dialect, g.Scheduler, g.Min = "labels", "default-scheduler", 3 }))
		}},
		{name: "the minimum of a job whose group is not made yet", code: answer.MinMemberTooHigh, exit: 4, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(with(waiting(2, 8), none), func(g *clustertest.Gang) {
				g.NoGroup, g.Age, g.Job = true, 10*time.Second, set(int64(5), "spec", "runPolicy", "schedulingPolicy", "minAvailable")
			}))
		}},
		{name: "the operator lost its leader", code: answer.OperatorDown, exit: 5, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			c.Lease("1ca428e5.training-operator.kubeflow.org", 12*time.Minute).Namespace = "kubeflow"
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Missing, g.NoGroup, g.Job, g.Age = 2, true, set(map[string]any{}, "status"), 3*time.Minute
			}))
		}},
		{name: "Kueue: a cohort that lends too little", code: answer.QueueTooSmall, exit: 6, offers: []answer.ActionKind{answer.Quota, answer.Fewer}, never: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			q := gpus("f", "4")
			q.Borrow = "4"
			c.LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "pool", q)
			c.ClusterQueue("sister", "pool", gpus("f", "64"))
			c.Nodes(4, 8).Add(with(waiting(2, 8), kueued))
		}},
		{name: "a label that no node has, in two roles, and the nearest value has too few nodes", code: answer.SelectorNoMatch, exit: 4, offers: []answer.ActionKind{answer.Relax}, wantText: []string{"require class=h200"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			label(c, "class", "h100", "h200", "h200")
			g := with(waiting(1, 8), spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"class": "h10"} }))
			g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, GPUs: 8}}
			c.Add(g)
		}},
		{name: "Kueue: an admission check stays pending for what is submitted again", code: answer.TooBig, exit: 6, also: []answer.Code{answer.KueueCheck}, never: []answer.ActionKind{answer.Fewer, answer.Trim}, build: func(c *clustertest.Cluster) {
			kueue(c, "32", "BestEffortFIFO")
			set(map[string]any{"conditions": []any{clustertest.Condition("QuotaReserved", "True", "QuotaReserved", "", time.Minute)},
				"admissionChecks": []any{map[string]any{"name": "prov", "state": "Pending", "message": "waiting for nodes"}}}, "status")(kueueWorkload(c, "gang", time.Minute, ""))
			c.Nodes(2, 8).Add(with(waiting(3, 8), kueued))
		}},
		{name: "Kueue: a sister has borrowed", code: answer.KueueQuota, exit: 3, offers: []answer.ActionKind{answer.Quota, answer.Wait}, build: func(c *clustertest.Cluster) {
			c.LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "pool", gpus("f", "16"))
			c.ClusterQueue("sister", "pool", gpus("f", "16"))
			c.Nodes(6, 8).Add(clustertest.Gang{Name: "other", Workers: 3, GPUs: 8, Nodes: []string{"n1", "n2", "n3"}})
			clustertest.Admit(c.Workload("other", "lq", time.Hour), "sister", "f", "24")
			c.Add(with(waiting(2, 8), kueued))
		}},
		{name: "KAI: quota for gangs that cannot be preempted", code: answer.QueueTooSmall, exit: 6, offers: []answer.ActionKind{answer.Quota}, build: func(c *clustertest.Cluster) {
			c.Object(map[string]any{"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": map[string]any{"name": "q"}, "spec": map[string]any{"resources": map[string]any{"gpu": map[string]any{"quota": int64(8), "limit": int64(-1)}}}})
			c.Schedules("kai-scheduler").GangScheduler("")
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Dialect, g.Scheduler, g.Queue, g.Group = "kai", "kai-scheduler", "q", set("non-preemptible", "spec", "preemptibility")
			}))
		}},
		{name: "a node that matters among some that do not", code: answer.NodeNotReady, exit: 5, offers: []answer.ActionKind{answer.Fix, answer.Fewer}, wantText: []string{"repair n2   verified"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(waiting(2, 8))
			clustertest.NotReady(c.S.Nodes[1], time.Hour)
			clustertest.NotReady(c.Node("cpu1", 0), time.Hour)
		}},
		{name: "a claim that others share", code: answer.PVCUnbound, exit: 4, never: []answer.ActionKind{answer.AddNodes}, build: func(c *clustertest.Cluster) {
			wait, class := storagev1.VolumeBindingWaitForFirstConsumer, "local"
			c.Put(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "csi.example.com", VolumeBindingMode: &wait})
			c.Put(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}})
			c.Nodes(2, 8).Add(with(waiting(2, 8), spec(mountsClaim("data"))))
		}},
		{name: "cpu is short for all together, not for one", code: answer.InsufficientCPU, exit: 3, offers: []answer.ActionKind{answer.Trim, answer.Wait}, wantText: []string{"64 in all, and nodes have 56 of 96 left"}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, CPU: "40", Nodes: []string{"n1"}}).Add(with(waiting(2, 4), func(g *clustertest.Gang) { g.CPU = "32" }))
		}},
		{name: "a PyTorchJob waits for a Job", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.AddNodes}, build: func(c *clustertest.Cluster) {
			deadline := int64(3600)
			c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Kind: "Job", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}, NoGroup: true, Age: 30 * time.Minute, BatchJob: func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = &deadline }}).
				Add(with(waiting(2, 8), ofKind("PyTorchJob")))
		}, wantText: []string{"14:30"}},
		{name: "an MPIJob whose launcher has another shape", code: answer.Fragmented, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.Reshape}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 4, "n1").Runs("b", 4, "n2").Add(with(waiting(1, 8), func(g *clustertest.Gang) {
				g.Kind, g.More = "MPIJob", []clustertest.Role{{Name: "Launcher", Replicas: 1, CPU: "1"}}
			}))
		}},
	} {
		t.Run(s.name, func(t *testing.T) {
			s.play(t)
		})
	}
}

// What is not modelled makes an answer less sure, and is named.
func TestUnmodelledIsReported(t *testing.T) {
	build := func(topology bool) *answer.Answer {
		c := clustertest.New()
		c.Queue("q", "Open", nil)
		c.Nodes(2, 8).Runs("a", 8, "n1").Add(with(waiting(2, 8), func(g *clustertest.Gang) {
			g.Volcano = "q"
			if topology {
				g.Group = set(map[string]any{"mode": "hard", "highestTierAllowed": int64(20)}, "spec", "networkTopology")
			}
		}))
		a, err := Explain(context.Background(), c.Done(), Query{Namespace: "team", Name: "gang"}, Options{NoAdvice: true})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := build(false); a.Confidence.Level != answer.Exact || len(a.Confidence.Unmodelled) != 0 {
		t.Errorf("got %+v", a.Confidence)
	}
	a := build(true)
	if a.Confidence.Level != answer.Heuristic || len(a.Confidence.Unmodelled) != 1 {
		t.Errorf("got %+v", a.Confidence)
	}
	if out := text(t, a); !match("not modelled: the network topology", out) {
		t.Errorf("the text does not have it:\n%s", out)
	}
}
