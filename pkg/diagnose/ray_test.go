package diagnose

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// A RayJob is one gang, whose pods are those of the RayCluster that was made of it.
func TestRay(t *testing.T) {
	of := func(kind string, g clustertest.Gang) clustertest.Gang {
		g.Kind = kind
		return g
	}
	for _, s := range []scenario{
		{name: "a node short", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.Fewer}, wantText: []string{"PLACEMENT 4/5", "gangctl resize gang --workers 3 -n team"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("busy", 8, "n4").Add(of("RayJob", waiting(4, 8)))
		}},
		{name: "a RayCluster", code: answer.TooBig, exit: 6, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(of("RayCluster", waiting(4, 16)))
		}},
		{name: "suspended by a user", code: answer.JobSuspended, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"rayjob gang", `"suspend":false`}, build: func(c *clustertest.Cluster) {
			g := of("RayJob", waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { job["spec"].(map[string]any)["suspend"] = true }
			c.Nodes(2, 8).Add(g)
		}},
		{name: "its operator is down", code: answer.OperatorDown, exit: 5, wantText: []string{"kuberay-operator"}, build: func(c *clustertest.Cluster) {
			g := of("RayJob", waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { delete(job, "status") }
			c.Nodes(2, 8).Add(g)
			c.S.Deployments[len(c.S.Deployments)-1].Status.ReadyReplicas = 0
		}},
		{name: "its operator is not there", code: answer.OperatorMissing, exit: 5, wantText: []string{"no kuberay-operator runs in this cluster"}, notText: []string{"install operator"}, build: func(c *clustertest.Cluster) {
			g := of("RayJob", waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { delete(job, "status") }
			c.Nodes(2, 8).Add(g)
			c.S.Deployments = c.S.Deployments[:len(c.S.Deployments)-1]
		}},
	} {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

// submits adds the Job of a RayJob that submits its entrypoint, with its pod.
func submits(c *clustertest.Cluster, change func(*batchv1.Job, *corev1.Pod)) {
	yes := true
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang", UID: "submitter", CreationTimestamp: clustertest.Ago(5 * time.Minute),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayJob", Name: "gang", UID: "RayJob:team/gang", Controller: &yes}}}}
	j.Spec.Template.Spec.Containers = []corev1.Container{{Name: "ray-job-submitter", Image: "train:v1"}}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-x7k2p", UID: "submitter-pod", CreationTimestamp: clustertest.Ago(5 * time.Minute), Labels: map[string]string{"job-name": "gang"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "gang", UID: "submitter", Controller: &yes}}}}
	p.Spec = *j.Spec.Template.Spec.DeepCopy()
	p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "ray-job-submitter", Image: "train:v1", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	change(j, p)
	c.Put(j).Put(p)
}

// Nothing runs on the members of a RayJob before its submitter does.
func TestRaySubmitter(t *testing.T) {
	up := func(c *clustertest.Cluster, change func(*batchv1.Job, *corev1.Pod)) {
		g := waiting(2, 8)
		g.Kind, g.Nodes, g.More = "RayJob", []string{"n1", "n2"}, []clustertest.Role{{Name: "Head", Replicas: 1, CPU: "1", Memory: "1Gi", Nodes: []string{"n1"}}}
		c.Nodes(2, 8).Add(g)
		submits(c, change)
	}
	for _, s := range []scenario{
		{name: "its image cannot be pulled", code: answer.ImagePull, exit: 4, wantText: []string{"its submitter does not run: submitter-0: image train:v1", "3 members of gang hold 16 GPUs for nothing"}, build: func(c *clustertest.Cluster) {
			up(c, func(_ *batchv1.Job, p *corev1.Pod) { podWaits(p, "ImagePullBackOff", "Back-off pulling image") })
		}},
		{name: "it has no node", code: answer.SelectorNoMatch, exit: 4, wantText: []string{"its submitter does not run"}, notText: []string{"resize", "resubmit"}, build: func(c *clustertest.Cluster) {
			up(c, func(j *batchv1.Job, p *corev1.Pod) {
				p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
				p.Spec.NodeSelector = map[string]string{"pool": "cpu"}
				j.Spec.Template.Spec.NodeSelector = p.Spec.NodeSelector
			})
		}},
		{name: "the quota has no room for it alongside the members", code: answer.NSQuotaTooSmall, exit: 6, wantText: []string{"its submitter does not run: quota q of namespace team allows 3 pod slots in all, and the gang needs 4"}, build: func(c *clustertest.Cluster) {
			up(c, func(*batchv1.Job, *corev1.Pod) {})
			c.S.Pods = c.S.Pods[:len(c.S.Pods)-1]
			three := clustertest.List("pods", "3")
			c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: three}, Status: corev1.ResourceQuotaStatus{Hard: three, Used: three}})
		}},
		{name: "no node has room for it", code: answer.MemberLost, exit: 7, also: []answer.Code{answer.InsufficientCPU}, offers: []answer.ActionKind{answer.Wait, answer.AddNodes}, wantText: []string{"3 members hold 16 GPUs for nothing, as its submitter finds no node", "research/other ends"},
			notText: []string{"RayJob team/gang holds", "resize"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "other", Workers: 2, CPU: "40", Memory: "1Gi", Nodes: []string{"n1", "n2"}, Age: 2 * time.Hour})
				g := waiting(2, 8)
				g.Kind, g.Nodes, g.More = "RayJob", []string{"n1", "n2"}, []clustertest.Role{{Name: "Head", Replicas: 1, CPU: "1", Memory: "1Gi", Nodes: []string{"n1"}}}
				c.Add(g)
				submits(c, func(_ *batchv1.Job, p *corev1.Pod) {
					p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
					p.Spec.Containers[0].Resources.Requests = clustertest.List("cpu", "60")
				})
			}},
		{name: "it runs", exit: 0, build: func(c *clustertest.Cluster) { up(c, func(*batchv1.Job, *corev1.Pod) {}) }},
		{name: "it has succeeded", exit: 0, build: func(c *clustertest.Cluster) {
			up(c, func(j *batchv1.Job, p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodSucceeded}
				j.Status = batchv1.JobStatus{Succeeded: 1, Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
			})
		}},
	} {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

// The RayCluster of a RayJob is no job besides it, unless the RayJob is not to be seen.
func TestRayJobIsListedOnce(t *testing.T) {
	c := clustertest.New().Nodes(4, 8).Add(clustertest.Gang{Kind: "RayJob", Name: "gang", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}})
	w := view.New(c.S)
	if all := w.Jobs(); len(all) != 1 || all[0].Kind.Kind != "RayJob" || len(w.Gang(all[0]).ExistingPods()) != 3 {
		t.Errorf("got %v", all)
	}
	for kind := range c.S.Custom {
		if kind.Kind == "RayJob" {
			delete(c.S.Custom, kind)
		}
	}
	w = view.New(c.S)
	if all := w.Jobs(); len(all) != 1 || all[0].Kind.Kind != "RayCluster" || len(w.Gang(all[0]).ExistingPods()) != 3 {
		t.Errorf("without the RayJob: %v", all)
	}
}
