package stages_test

import (
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Users do not want to repair one thing after the other: whatever the first reason is, the later ones are reported too.
func TestSeveralReasons(t *testing.T) {
	nowhere := spec(selects("class", "b200"))
	check(t, []testCase{
		{name: "suspended, and too big", code: answer.JobSuspended, exit: 4, also: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, none, job(set(true, "spec", "runPolicy", "suspend"))))
		}},
		{name: "no operator, and no such label", code: answer.OperatorMissing, exit: 5, also: []answer.Code{answer.SelectorNoMatch}, build: func(c *clustertest.Cluster) {
			c.S.Deployments = c.S.Deployments[1:]
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen, nowhere))
		}},
		{name: "an invalid spec, and too big once it is valid", code: answer.JobInvalid, exit: 4, also: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(2, 8, none, spec(func(p *corev1.PodSpec) { p.Containers[0].Name = "main" })))
		}},
		{name: "quota and queue", code: answer.NSQuotaTooSmall, exit: 6, also: []answer.Code{answer.QueueClosed}, build: func(c *clustertest.Cluster) {
			quota(c, "q", clustertest.List("requests.nvidia.com/gpu", "8"), nil)
			c.Queue("q", "Closed", nil)
			c.Nodes(2, 8).Add(gangOf(2, 8, inQueue("q")))
		}},
		{name: "what waits gives way to what is blocked later", code: answer.SelectorNoMatch, exit: 4, also: []answer.Code{answer.NSQuota}, build: func(c *clustertest.Cluster) {
			quota(c, "q", clustertest.List("requests.nvidia.com/gpu", "16"), clustertest.List("requests.nvidia.com/gpu", "8"))
			c.Nodes(2, 8).Add(gangOf(2, 8, none, nowhere))
		}},
		{name: "queue, scheduler and room", code: answer.QueueClosed, exit: 5, also: []answer.Code{answer.SchedulerDown, answer.TooBig}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Closed", nil)
			c.S.Leases = nil
			c.Lease("gang-scheduler", time.Hour)
			c.Nodes(1, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Volcano = "q" }))
		}},
		{name: "two roles with one typing error are one reason", code: answer.ResourceNotOffered, exit: 4, first: "no node offers nvidia.com/gpus", wantText: []string{"it is so for PS and Worker", "fix: request nvidia.com/gpu instead of nvidia.com/gpus"}, never: []answer.Code{answer.SelectorNoMatch}, alone: true,
			build: func(c *clustertest.Cluster) {
				slip := func(p *corev1.PodSpec) {
					p.Containers[0].Resources.Requests["nvidia.com/gpus"] = clustertest.List("x", "1")["x"]
				}
				c.Nodes(2, 8).Add(gangOf(2, 0, func(g *clustertest.Gang) {
					g.More, g.Spec = []clustertest.Role{{Name: "PS", Replicas: 1}}, slip
				}))
			}},
		{name: "two roles that select one label are one reason", code: answer.SelectorNoMatch, exit: 4, first: "no node has the label class=b200", wantText: []string{"it is so for PS and Worker", "--node-selector class- -n team"}, alone: true,
			build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, nowhere, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "PS", Replicas: 1}} }))
			}},
		{name: "two roles with one topology label are one reason, which names both", code: answer.SelectorNoMatch, exit: 4, first: "no node has the label rack, for the topology of PS and Worker", alone: true, build: func(c *clustertest.Cluster) {
			spread := spec(func(p *corev1.PodSpec) {
				p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule}}
			})
			c.Nodes(2, 8).Add(gangOf(2, 8, spread, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "PS", Replicas: 1}} }))
		}},
		{name: "gate and minimum", code: answer.MinMemberTooHigh, exit: 4, also: []answer.Code{answer.SchedulingGated}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, gate("example.com/wait"), func(g *clustertest.Gang) { g.Min = 3 }))
		}},
		{name: "label, device and claim of one pod", code: answer.ResourceNotOffered, exit: 4, also: []answer.Code{answer.SelectorNoMatch, answer.PVCUnbound}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 0, spec(func(p *corev1.PodSpec) {
				selects("class", "b200")(p)
				p.Containers[0].Resources.Requests["nvidia.com/gpus"] = clustertest.List("x", "1")["x"]
				p.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "nope"}}}}
			})))
		}},
		{name: "Kueue's queue is stopped, and the nodes are gone", code: answer.QueueClosed, exit: 5, also: []answer.Code{answer.TooBig}, build: func(c *clustertest.Cluster) {
			set("Hold", "spec", "stopPolicy")(pool(c, "16").Object)
			c.S.Nodes = c.S.Nodes[:1]
			c.Add(gangOf(2, 8, kueued))
		}},
		{name: "half of it runs, the other half crashes", code: answer.CrashLoop, exit: 4, never: []answer.Code{answer.MemberLost}, build: func(c *clustertest.Cluster) {
			second(c, waits("CrashLoopBackOff", ""))
		}},
		{name: "a dead scheduler and a member that pulls", code: answer.SchedulerDown, exit: 5, build: func(c *clustertest.Cluster) {
			c.S.Leases = nil
			c.Lease("gang-scheduler", time.Hour)
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = 2 * time.Hour }))
		}},
	})
}

// Gangs of one object in two dialects, of an operator's first releases, and of pods without an owner.
func TestOddGangs(t *testing.T) {
	container := []any{map[string]any{"name": "tensorflow", "image": "x", "resources": map[string]any{"limits": map[string]any{"nvidia.com/gpu": "8"}}}}
	template := map[string]any{"spec": map[string]any{"schedulerName": clustertest.Scheduler, "containers": container}}
	old := func(c *clustertest.Cluster, version string, spec map[string]any) {
		c.Object(map[string]any{"apiVersion": "kubeflow.org/" + version, "kind": "TFJob", "spec": spec, "status": map[string]any{"startTime": "2026-11-21T13:59:40Z"},
			"metadata": map[string]any{"name": "gang", "namespace": "team", "uid": "TFJob:team/gang", "creationTimestamp": "2026-11-21T13:59:40Z"}})
	}
	check(t, []testCase{
		{name: "the object of the pods' scheduler counts", code: answer.Fits, exit: 3, first: "all 2 members", wantText: []string{"PodGroup.scheduling.volcano.sh gang is not read, as no pod names it: PodGroup.scheduling.x-k8s.io gang counts"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, young))
			u := c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")][0].DeepCopy()
			u.SetAPIVersion("scheduling.volcano.sh/v1beta1")
			u.SetUID("other")
			set(int64(9), "spec", "minMember")(u.Object)
			c.Put(u)
		}},
		{name: "and if that is Volcano, its object does not count as long as no pod names it", code: answer.FitsNotPlaced, exit: 5, wantText: []string{"volcano does not read PodGroup.scheduling.x-k8s.io gang: it places members one by one"}, build: func(c *clustertest.Cluster) {
			c.Queue("default", "Open", nil)
			c.Schedules("volcano").Nodes(2, 8).Add(gangOf(2, 8, scheduledBy("volcano")))
			u := c.S.Custom[kindOf("scheduling.x-k8s.io", "PodGroup")][0].DeepCopy()
			u.SetAPIVersion("scheduling.volcano.sh/v1beta1")
			u.SetUID("other")
			set(int64(9), "spec", "minMember")(u.Object)
			c.Put(u)
		}},
		{name: "a job of v1alpha1", code: answer.Fits, exit: 3, first: "all 3 members", build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8)
			old(c, "v1alpha1", map[string]any{"replicaSpecs": []any{map[string]any{"tfReplicaType": "MASTER", "replicas": int64(1), "template": template}, map[string]any{"tfReplicaType": "WORKER", "replicas": int64(2), "template": template}}})
		}},
		{name: "a job of v1beta2 that is too big", code: answer.TooBig, exit: 6, first: "2 workers with 8 GPUs each", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8)
			old(c, "v1beta2", map[string]any{"cleanPodPolicy": "None", "tfReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(2), "template": template}}})
		}},
		{name: "a job of v1alpha1 without the container", code: answer.JobInvalid, exit: 4, first: "tensorflow", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8)
			old(c, "v1alpha1", map[string]any{"replicaSpecs": []any{map[string]any{"tfReplicaType": "WORKER", "replicas": int64(2), "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "tf"}}}}}}})
		}},
		{name: "elastic: enough for the minimum now", code: answer.Fits, exit: 3, first: "2 of 3 members .it needs 2.", build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n3").Add(gangOf(3, 8, young, func(g *clustertest.Gang) { g.Min = 2 }))
		}},
		{name: "elastic: not even the minimum", code: answer.NodesBusy, exit: 3, first: "2 workers with 8 GPUs each", build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n2", "n3").Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Min = 2 }))
		}},
		{name: "elastic: it runs with its minimum", exit: 0, wantText: []string{"1 of 3 members are not up; the gang needs 2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Min, g.Nodes = 2, []string{"n1", "n2"} }))
		}},
		{name: "members that have ended well count", exit: 0, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }, pods(func(i int, p *corev1.Pod) {
				if i == 1 {
					p.Status.Phase = corev1.PodSucceeded
				}
			})))
		}},
		{name: "a parameter server and workers of another shape", code: answer.Fragmented, exit: 3, first: "8 GPUs on one node", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 4, "n1").Runs("b", 4, "n2").Add(gangOf(1, 8, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "PS", Replicas: 2}} }))
		}},
		{name: "members with a volume each", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			for _, name := range []string{"ckpt-0", "ckpt-1"} {
				claim := pvc(c, name, "", corev1.ClaimBound)
				claim.UID, claim.Spec.VolumeName = types.UID(name), "vol-"+name
				claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
				pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "vol-" + name}}
				pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "team", Name: name, UID: claim.UID}
				c.Put(pv)
			}
			c.Nodes(2, 8).Add(gangOf(2, 8, young, pods(func(i int, p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: []string{"ckpt-0", "ckpt-1"}[i]}}}}
			})))
		}},
		{name: "three of the four pods of a Job have ended well", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.MinMemberTooHigh, answer.BelowQuorum}, build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8, func(g *clustertest.Gang) {
				four := int32(4)
				g.Kind, g.Min = "Job", 4
				g.BatchJob = func(j *batchv1.Job) {
					j.Spec.Parallelism, j.Spec.Completions, j.Status.Succeeded = &four, &four, 3
				}
			}))
		}},
		{name: "half of an indexed Job has ended well, and the others find no room", code: answer.NodesBusy, exit: 3, first: "0 of 32 GPUs free", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n1", "n2", "n3", "n4").Add(gangOf(8, 8, halfDone))
		}},
		{name: "half of an indexed Job has ended well, and there is room for one more", code: answer.Fits, exit: 3, first: "room for 1 of 4 members that are left .it needs 1. on n1", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n2", "n3", "n4").Add(gangOf(8, 8, halfDone, young))
		}},
		{name: "half of an indexed Job has ended well, and there is room for the others", code: answer.Fits, exit: 3, first: "room for all 4 members that are left on n1, n2, n3, n4", build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(8, 8, halfDone, young))
		}},
		{name: "half of an indexed Job has ended well, and one of the others runs", exit: 0, wantText: []string{"3 of 8 members are not up; the gang needs 4"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("a", 8, "n2", "n3", "n4").Add(gangOf(8, 8, halfDone, pods(func(i int, p *corev1.Pod) {
				indexed(4)(i, p)
				if i == 4 {
					p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
				}
			})))
		}},
		{name: "a Job of one pod after the other, whose second waits", code: answer.NodesBusy, exit: 3, first: "0 of 8 GPUs free", build: func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(2, 8, ungrouped, pods(indexed(1)), func(g *clustertest.Gang) {
				g.Kind, g.BatchJob = "Job", waves(1, 5, 1)
			}))
		}},
		{name: "kube-batch by a budget that is larger than the job", code: answer.MinMemberTooHigh, exit: 4, first: "PodDisruptionBudget", build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, speaks(c, gang.PDB, "kube-batch"), func(g *clustertest.Gang) { g.Min = 3 }))
		}},
	})
}

// halfDone makes a gang an indexed Job of two waves of four pods each, of which the first has ended well.
func halfDone(g *clustertest.Gang) {
	g.Kind, g.Min, g.Pod, g.BatchJob = "Job", 4, indexed(4), waves(4, 8, 4)
}

// indexed gives the pods of a Job their completion index, and has the first ones end well.
func indexed(done int) func(int, *corev1.Pod) {
	return func(i int, p *corev1.Pod) {
		p.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(i)
		if i < done {
			p.Status.Phase = corev1.PodSucceeded
		}
	}
}

// waves is a Job that runs so many pods at a time, of all that it completes, of which some have succeeded.
func waves(parallelism, completions, done int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.Parallelism, j.Spec.Completions, j.Status.Succeeded = &parallelism, &completions, done
	}
}
