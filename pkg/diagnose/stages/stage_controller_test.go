package stages_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// unseen is a job that no controller has looked at.
func unseen(g *clustertest.Gang) {
	none(g)
	g.NoGroup, g.Job = true, set(map[string]any{}, "status")
}

func TestController(t *testing.T) {
	args := func(c *clustertest.Cluster, args ...string) {
		c.S.Deployments[0].Spec.Template.Spec.Containers[0].Args = args
	}
	check(t, []testCase{
		{name: "a job of some seconds is not reported", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.S.Deployments = c.S.Deployments[1:]
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
		}},
		{name: "deployments may not be listed", code: answer.BelowQuorum, exit: 3, first: "has not made the others in 10m", never: []answer.Code{answer.OperatorMissing}, build: func(c *clustertest.Cluster) {
			c.S.Deployments, c.S.Denied = nil, []snapshot.Denial{{Resource: "deployments.apps"}}
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen))
		}},
		{name: "the newer trainer does not run these jobs", code: answer.OperatorMissing, exit: 5, wantText: []string{"trainer-controller-manager", "TrainJob"}, build: func(c *clustertest.Cluster) {
			c.S.Deployments = c.S.Deployments[1:]
			c.Deployment("kubeflow-system", "kubeflow-trainer", "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.0.0")
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen))
		}},
		{name: "a Job needs no operator", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.S.Deployments = c.S.Deployments[1:]
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) { g.Kind, g.Age = "Job", 30*time.Second }))
		}},
		{name: "the MPI operator is one of two", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.S.Deployments = c.S.Deployments[1:]
			c.Deployment("mpi-operator", "mpi-operator", "mpioperator/mpi-operator:0.6.0")
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen, func(g *clustertest.Gang) { g.Kind, g.Age = "MPIJob", 30*time.Second }))
		}},
		{name: "the Training Operator runs MPIJobs of another version", code: answer.OperatorMissing, exit: 5, first: "training-operator handles MPIJobs of v1 only, and this one is of v2beta1, for the mpi-operator", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen, func(g *clustertest.Gang) { g.Kind = "MPIJob" }, job(func(j map[string]any) {
				set(map[string]any{}, "status")(j)
				j["apiVersion"] = "kubeflow.org/v2beta1"
			})))
		}},
		{name: "the operator crashes", code: answer.OperatorDown, exit: 5, first: "0/1", wantText: []string{"CrashLoopBackOff, 9 restarts; last exit code 2", "no matches for kind PodGroup"}, fix: "get Deployment", build: func(c *clustertest.Cluster) {
			c.S.Deployments[0].Status.ReadyReplicas = 0
			p := &corev1.Pod{}
			p.Namespace, p.Name, p.Labels = "kubeflow", "training-operator-0", map[string]string{"app": "training-operator"}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 9, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: "no matches for kind PodGroup"}}}}
			c.Put(p)
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen))
		}},
		{name: "the operator is down, but the pods are there", code: answer.NodesBusy, exit: 3, never: []answer.Code{answer.OperatorDown}, build: func(c *clustertest.Cluster) {
			c.S.Deployments[0].Status.ReadyReplicas = 0
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8))
		}},
		{name: "the operator went down half-way", code: answer.OperatorDown, exit: 5, build: func(c *clustertest.Cluster) {
			c.S.Deployments[0].Status.ReadyReplicas = 0
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
		}},
		{name: "the operator's lease is old", code: answer.OperatorDown, exit: 5, first: "12m", wantText: []string{"kubeflow/1ca428e5.training-operator.kubeflow.org"}, build: func(c *clustertest.Cluster) {
			c.Lease("1ca428e5.training-operator.kubeflow.org", 12*time.Minute).Namespace = "kubeflow"
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen, func(g *clustertest.Gang) { g.Age = 3 * time.Minute }))
		}},
		{name: "the operator's lease is fresh", code: answer.PodGroupMissing, exit: 5, never: []answer.Code{answer.OperatorDown}, build: func(c *clustertest.Cluster) {
			c.Lease("1ca428e5.training-operator.kubeflow.org", 12*time.Second).Namespace = "kubeflow"
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen, func(g *clustertest.Gang) { g.Age = 3 * time.Minute }))
		}},
		{name: "the operator's lease has been old since half of the pods were made", code: answer.OperatorDown, exit: 5, first: "12m", build: func(c *clustertest.Cluster) {
			c.Lease("1ca428e5.training-operator.kubeflow.org", 12*time.Minute).Namespace = "kubeflow"
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing, g.Age = 1, 13*time.Minute }))
		}},
		{name: "the operator has made pods since its lease is old: it elects no leader any more", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.OperatorDown}, build: func(c *clustertest.Cluster) {
			c.Lease("1ca428e5.training-operator.kubeflow.org", 240*time.Hour).Namespace = "kubeflow"
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
		}},
		{name: "the lease of a controller that has another name", code: answer.OperatorDown, exit: 5, wantText: []string{"6d4f6a47.x-k8s.io"}, build: func(c *clustertest.Cluster) {
			c.Lease("6d4f6a47.x-k8s.io", 12*time.Minute).Namespace = "jobset-system"
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Kind, g.Missing, g.Age = "JobSet", 1, 13*time.Minute }))
		}},
		{name: "the lease of Kueue is old", code: answer.OperatorDown, exit: 5, first: "kueue-controller-manager gives no sign of life: its lease was last renewed 20m ago", not: []string{"integration"}, build: func(c *clustertest.Cluster) {
			c.Deployment("kueue-system", "kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.19.2")
			c.Lease("c1f6bfd2.kueue.x-k8s.io", 20*time.Minute).Namespace = "kueue-system"
			c.LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "16"})
			c.Nodes(2, 8).Add(gangOf(2, 8, kueued))
		}},
		{name: "the controllers of Kubernetes have no leader", code: answer.OperatorDown, exit: 5, first: "kube-controller-manager, which makes the pods, gives no sign of life: its lease was last renewed 15m ago", build: func(c *clustertest.Cluster) {
			c.Lease("kube-controller-manager", 15*time.Minute).Namespace = "kube-system"
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) {
				g.Kind, g.BatchJob = "Job", func(j *batchv1.Job) { j.Status.StartTime = nil }
			}))
		}},
		{name: "the controllers of Kubernetes have started a Job since", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.OperatorDown}, build: func(c *clustertest.Cluster) {
			c.Lease("kube-controller-manager", 15*time.Minute).Namespace = "kube-system"
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) {
				g.Kind, g.BatchJob = "Job", func(j *batchv1.Job) { j.Status.StartTime = ptr.To(clustertest.Ago(9 * time.Minute)) }
			}))
		}},
		{name: "a Job is left to a controller that does not act", code: answer.OperatorDown, exit: 5, first: "gang is left to example.com/ctl .spec.managedBy., which has not acted on it for 10m", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) {
				g.Kind, g.BatchJob = "Job", func(j *batchv1.Job) { j.Spec.ManagedBy, j.Status = ptr.To("example.com/ctl"), batchv1.JobStatus{} }
			}))
		}},
		{name: "a queue of Kueue, which is not in the cluster", code: answer.JobSuspended, exit: 4, fix: "resume", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, kueued))
		}},
		{name: "a gate of Kueue, which is not in the cluster", code: answer.SchedulingGated, exit: 5, first: "scheduling gate kueue.x-k8s.io/admission holds 2 of 2 pods: only Kueue lifts it, which is not in this cluster", never: []answer.Code{answer.QueueNotFound}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, pods(func(_ int, p *corev1.Pod) {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
			})))
		}},
		{name: "the operator watches another namespace", code: answer.OperatorMissing, exit: 5, first: "only namespace prod", wantText: []string{"--namespace=prod"}, build: func(c *clustertest.Cluster) {
			args(c, "--namespace=prod")
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen))
		}},
		{name: "the operator watches this namespace", code: answer.OperatorDown, exit: 5, first: "has not looked", build: func(c *clustertest.Cluster) {
			args(c, "--namespace", "team")
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen))
		}},
		{name: "the operator handles other kinds", code: answer.OperatorMissing, exit: 5, first: "pytorchjob", build: func(c *clustertest.Cluster) {
			args(c, "--enable-scheme=pytorchjob")
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen))
		}},
		{name: "the operator handles this kind among others", code: answer.OperatorDown, exit: 5, first: "has not looked", build: func(c *clustertest.Cluster) {
			args(c, "--enable-scheme=pytorchjob", "--enable-scheme=TFJob")
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen))
		}},
		{name: "another controller manages the job", code: answer.OperatorDown, exit: 5, wantText: []string{"managedBy", "kueue.x-k8s.io/multikueue"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen, job(func(j map[string]any) {
				set(map[string]any{}, "status")(j)
				set("kueue.x-k8s.io/multikueue", "spec", "runPolicy", "managedBy")(j)
			})))
		}},
		{name: "the operator may not create services", code: answer.OperatorRBAC, exit: 5, first: "may not create services", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreateService", `Error creating: services is forbidden: User "system:serviceaccount:kubeflow:training-operator" cannot create resource "services" in API group "" in the namespace "team"`, 4*time.Second)
		}},
		{name: "the operator, whose account is seen, may not create services", code: answer.OperatorRBAC, exit: 5, wantText: []string{"can-i create services --as system:serviceaccount:kubeflow:operator"},
			fix: "let system:serviceaccount:kubeflow:operator create services in team", build: mayNot("system:serviceaccount:kubeflow:operator", `create resource "services" in API group "" in the namespace "team"`)},
		{name: "the operator may not set finalizers, as it reports itself", code: answer.OperatorRBAC, exit: 5, wantText: []string{"can-i update tfjobs.kubeflow.org --subresource=finalizers --as"},
			fix: "update tfjobs.kubeflow.org/finalizers in team", build: mayNot("system:serviceaccount:kubeflow:operator", `update resource "tfjobs/finalizers" in API group "kubeflow.org" in the namespace "team"`)},
		{name: "a report about another account", code: answer.OperatorRBAC, exit: 5, first: "may not create pods", not: []string{"fix: .*evil", "can-i"}, fix: "if it is its account",
			build: mayNot("system:serviceaccount:team:evil", `create resource "pods" in API group "" in the namespace "team"`)},
		{name: "a report about a user", code: answer.OperatorRBAC, exit: 5, not: []string{"fix: .*eve", "can-i"}, build: mayNot("eve", `create resource "pods" in API group "" in the namespace "team"`)},
		{name: "a report about what no operator needs", code: answer.OperatorRBAC, exit: 5, not: []string{"fix: .*rolebindings", "can-i"},
			build: mayNot("system:serviceaccount:kubeflow:operator", `create resource "rolebindings" in API group "rbac.authorization.k8s.io" in the namespace "team"`)},
		{name: "a report about a verb that no operator needs", code: answer.OperatorRBAC, exit: 5, not: []string{"fix: .*impersonate", "can-i"},
			build: mayNot("system:serviceaccount:kubeflow:operator", `impersonate resource "pods" in API group "" in the namespace "team"`)},
		{name: "a report about the whole cluster", code: answer.OperatorRBAC, exit: 5, not: []string{"fix: .*list", "can-i"},
			build: mayNot("system:serviceaccount:kubeflow:operator", `list resource "pods" in API group "" at the cluster scope`)},
		{name: "the operator may not set finalizers on the job", code: answer.OperatorRBAC, exit: 5, first: "may not update tfjobs.kubeflow.org/finalizers in namespace team",
			wantText: []string{"can-i update tfjobs.kubeflow.org --subresource=finalizers --as system:serviceaccount:kubeflow:"}, fix: "update tfjobs.kubeflow.org/finalizers", build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, none))
				refuse(c, `pods "gang-worker-0" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`)
			}},
		{name: "the operator was allowed to create pods in the end", code: answer.Fits, exit: 3, never: []answer.Code{answer.OperatorRBAC}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = 30 * time.Second }))
			refuse(c, `pods is forbidden: User "system:serviceaccount:kubeflow:training-operator" cannot create resource "pods" in API group "" in the namespace "team"`)
		}},
		{name: "Kueue is down", code: answer.OperatorDown, exit: 5, first: "kueue-controller-manager", build: func(c *clustertest.Cluster) {
			c.Deployment("kueue-system", "kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.19.2").Status.ReadyReplicas = 0
			c.LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "16"})
			c.Nodes(2, 8).Add(gangOf(2, 8, kueued))
		}},
	})
}

// A job that Kueue suspends, and for which it makes no Workload, is never resumed.
func TestWithoutWorkload(t *testing.T) {
	kueueRuns := func(c *clustertest.Cluster, age time.Duration, labels map[string]string) {
		c.Deployment("kueue-system", "kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.19.2")
		c.LocalQueue("lq", "cq")
		c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "16"})
		g := gangOf(2, 8, kueued)
		suspend := g.Job
		g.Age, g.Job = age, func(j map[string]any) {
			suspend(j)
			for key, value := range labels {
				set(value, "metadata", "labels", key)(j)
			}
		}
		c.Nodes(2, 8).Add(g)
	}
	gated := func(c *clustertest.Cluster, age time.Duration) {
		c.Deployment("kueue-system", "kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.19.2")
		c.LocalQueue("lq", "cq")
		c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "16"})
		c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
			g.Age, g.Dialect, g.Queue = age, gang.Kueue, "lq"
			g.Pod = func(_ int, p *corev1.Pod) {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
			}
		}))
	}
	gold := map[string]string{"kueue.x-k8s.io/priority-class": "gold"}
	class := func(c *clustertest.Cluster, name string) {
		c.Object(map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": map[string]any{"name": name}, "value": int64(100)})
	}
	check(t, []testCase{
		{name: "for hours", code: answer.OperatorDown, exit: 5, first: "has made no Workload for gang for 3h, so it never resumes it: its integration of TFJobs is not enabled, or fails", build: func(c *clustertest.Cluster) {
			kueueRuns(c, 3*time.Hour, nil)
		}},
		{name: "it is new", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) { kueueRuns(c, time.Minute, nil) }},
		{name: "there is one", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			kueueRuns(c, time.Minute, nil)
			c.Workload("gang", "lq", 3*time.Hour)
		}},
		{name: "its class does not exist", code: answer.PriorityMissing, exit: 4, first: `WorkloadPriorityClass "gold" does not exist, so Kueue makes no Workload for gang.*there are: prod`, fix: "use WorkloadPriorityClass prod",
			wantText: []string{"Kueue reported 10s ago: WorkloadPriorityClass .gold. not found"}, build: func(c *clustertest.Cluster) {
				kueueRuns(c, 10*time.Minute, gold)
				class(c, "prod")
				c.Event("TFJob", "team", "gang", "kubeflow.org/tfjob-kueue-controller", "WorkloadPriorityClassNotFound", `WorkloadPriorityClass "gold" not found`, 10*time.Second)
			}},
		{name: "its class exists", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			kueueRuns(c, time.Minute, gold)
			class(c, "gold")
		}},
		{name: "there is one that an earlier job of its name has left", code: answer.OperatorDown, exit: 5, first: "has made no Workload for gang for 3h, so it never resumes it: its integration of TFJobs may fail for Workload team/tfjob-gang, which an earlier TFJob of its name has left",
			fix: "remove what is left of jobs that are gone: Workload team/tfjob-gang", build: func(c *clustertest.Cluster) {
				kueueRuns(c, 3*time.Hour, nil)
				c.Workload("gang", "lq", 4*time.Hour).SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: "gang", UID: "earlier"}})
			}},
		{name: "it holds pods by its gate", code: answer.OperatorDown, exit: 5, first: "so it never lifts the scheduling gate of its pods", build: func(c *clustertest.Cluster) { gated(c, time.Hour) }},
		{name: "it holds pods by its gate, and they are new", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) { gated(c, time.Minute) }},
		{name: "it holds pods by its gate, each with a Workload", code: answer.Fits, exit: 3, never: []answer.Code{answer.OperatorDown}, build: func(c *clustertest.Cluster) {
			gated(c, time.Hour)
			for _, p := range c.S.Pods {
				if p.Namespace == "team" {
					c.Workload(p.Name, "lq", time.Minute).SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}})
				}
			}
		}},
		{name: "no class is seen", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) { kueueRuns(c, time.Minute, gold) }},
	})
}

// refuse is an event that a pod of the TFJob was not accepted.
func refuse(c *clustertest.Cluster, message string) {
	c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreatePod", "Error creating: "+message, 4*time.Second)
}

// kueued puts the job into LocalQueue lq of Kueue, which suspends it.
func kueued(g *clustertest.Gang) {
	none(g)
	g.NoGroup = true
	g.Job = func(j map[string]any) {
		set(map[string]any{"kueue.x-k8s.io/queue-name": "lq"}, "metadata", "labels")(j)
		set(true, "spec", "runPolicy", "suspend")(j)
	}
}

// torchRuntime serves runtimes of TrainJobs, of which there is one.
func torchRuntime(c *clustertest.Cluster) {
	c.S.Server.Resources = append(c.S.Server.Resources, "clustertrainingruntimes.trainer.kubeflow.org/v1alpha1", "trainingruntimes.trainer.kubeflow.org/v1alpha1")
	c.Object(map[string]any{"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "metadata": map[string]any{"name": "torch-distributed"}})
}

// untrained is a TrainJob of which no JobSet was made, which names a runtime.
func untrained(c *clustertest.Cluster, kind, runtime string) {
	c.Nodes(2, 8).Add(gangOf(2, 8, unseen, func(g *clustertest.Gang) { g.Kind = "TrainJob" }, job(func(j map[string]any) {
		set(map[string]any{}, "status")(j)
		set(map[string]any{"kind": kind, "name": runtime}, "spec", "runtimeRef")(j)
	})))
	delete(c.S.Custom, kindOf("jobset.x-k8s.io", "JobSet"))
	c.S.Jobs = nil
}

// A controller may report in an event alone why it makes nothing of a job.
func TestControllerReports(t *testing.T) {
	const notFound = `TrainJob resources reconciliation failed: ClusterTrainingRuntime.trainer.kubeflow.org "torch-distribted" not found: not found specified clusterTrainingRuntime`
	reported := func(c *clustertest.Cluster) {
		c.Event("TrainJob", "team", "gang", "trainer-trainjob-controller", "TrainJobResourcesCreationFailed", notFound, 20*time.Second)
	}
	check(t, []testCase{
		{name: "a runtime that does not exist", code: answer.JobInvalid, exit: 4, alone: true, first: "ClusterTrainingRuntime torch-distribted does not exist.*: did you mean torch-distributed\\?", not: []string{"API server"}, build: func(c *clustertest.Cluster) {
			torchRuntime(c)
			untrained(c, "ClusterTrainingRuntime", "torch-distribted")
			reported(c)
		}},
		{name: "a runtime that does not exist, for which the job has failed", code: answer.JobFailed, exit: 9, first: "not supported: ClusterTrainingRuntime torch-distribted not found: did you mean torch-distributed\\?", build: func(c *clustertest.Cluster) {
			torchRuntime(c)
			untrained(c, "ClusterTrainingRuntime", "torch-distribted")
			conditions := []any{map[string]any{"type": "Failed", "status": "True", "reason": "TrainingRuntimeNotSupported", "message": "Referenced runtime is not supported: ClusterTrainingRuntime torch-distribted not found", "lastTransitionTime": "2026-01-01T00:00:00Z"}}
			for _, u := range c.S.Custom[kindOf("trainer.kubeflow.org", "TrainJob")] {
				set(conditions, "status", "conditions")(u.Object)
			}
		}},
		{name: "a runtime that does not exist, without an event", code: answer.JobInvalid, exit: 4, alone: true, first: "did you mean torch-distributed\\?", build: func(c *clustertest.Cluster) {
			torchRuntime(c)
			untrained(c, "ClusterTrainingRuntime", "torch-distribted")
		}},
		{name: "a runtime that does not exist, where it is not known what is served", code: answer.JobInvalid, exit: 4, first: "did you mean torch-distributed\\?", build: func(c *clustertest.Cluster) {
			served := c.S.Server.Resources
			torchRuntime(c)
			c.S.Server.Resources = served
			untrained(c, "ClusterTrainingRuntime", "torch-distribted")
		}},
		{name: "the cluster does not serve what the controller makes", code: answer.AdmissionDenied, exit: 5, wantText: []string{"does not serve PodGroup of scheduling.x-k8s.io/v1alpha1: its CRD is not installed"}, build: func(c *clustertest.Cluster) {
			torchRuntime(c)
			untrained(c, "ClusterTrainingRuntime", "torch-distributed")
			c.Event("TrainJob", "team", "gang", "trainer-trainjob-controller", "TrainJobResourcesCreationFailed", `TrainJob resources reconciliation failed: no matches for kind "PodGroup" in version "scheduling.x-k8s.io/v1alpha1"`, 20*time.Second)
		}},
		{name: "a runtime of the other kind", code: answer.JobInvalid, exit: 4, first: "TrainingRuntime torch-distributed does not exist", wantText: []string{"there is a ClusterTrainingRuntime of that name"}, build: func(c *clustertest.Cluster) {
			torchRuntime(c)
			untrained(c, "TrainingRuntime", "torch-distributed")
		}},
		{name: "runtimes may not be listed", code: answer.AdmissionDenied, exit: 4, first: "the controller reports that it cannot make the pods: TrainJob resources", never: []answer.Code{answer.OperatorDown, answer.JobInvalid}, not: []string{"API server"}, build: func(c *clustertest.Cluster) {
			torchRuntime(c)
			untrained(c, "ClusterTrainingRuntime", "torch-distribted")
			reported(c)
			c.S.Denied = []snapshot.Denial{{Resource: "clustertrainingruntimes.trainer.kubeflow.org"}}
		}},
		{name: "the cluster does not serve what TrainJobs are run as", code: answer.OperatorMissing, exit: 5, first: "gang is run as a JobSet, and the cluster does not serve these: CRD jobsets.jobset.x-k8s.io is not installed", never: []answer.Code{answer.OperatorDown}, build: func(c *clustertest.Cluster) {
			torchRuntime(c)
			untrained(c, "ClusterTrainingRuntime", "torch-distributed")
			c.S.Server.Resources = slices.DeleteFunc(c.S.Server.Resources, func(name string) bool { return strings.HasPrefix(name, "jobsets.") })
		}},
		{name: "the runtime exists, and the controller does not look", code: answer.OperatorDown, exit: 5, first: "has not looked at gang", build: func(c *clustertest.Cluster) {
			torchRuntime(c)
			untrained(c, "ClusterTrainingRuntime", "torch-distributed")
		}},
		{name: "an event of a policy engine is not the controller's", code: answer.OperatorDown, exit: 5, first: "has not looked at gang", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen))
			c.Event("TFJob", "team", "gang", "kyverno-admission", "PolicyViolation", "policy labels: fail", time.Minute)
		}},
		{name: "an event of the controller is a look", code: answer.PodGroupMissing, exit: 5, never: []answer.Code{answer.OperatorDown}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, unseen))
			c.Event("TFJob", "team", "gang", "tfjob-controller", "SuccessfulCreateService", "Created service: gang-worker-0", time.Minute)
		}},
		{name: "what JobSet reports of the API server is the API server's", code: answer.AdmissionDenied, exit: 4, first: "the API server denies the pods", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Kind = "JobSet" }))
			c.Event("JobSet", "team", "gang", "jobset", "JobCreationFailed", `job "gang-worker-0" creation failed with error: Job.batch "gang-worker-0" is invalid: spec.template.spec.volumes[0].name: Required value`, time.Minute)
		}},
	})
}

// mayNot is a cluster in which an event reports that a user may not do something, and the operator has an account of its own.
func mayNot(user, what string) func(*clustertest.Cluster) {
	return func(c *clustertest.Cluster) {
		for _, d := range c.S.Deployments {
			if d.Namespace == "kubeflow" {
				d.Spec.Template.Spec.ServiceAccountName = "operator"
			}
		}
		c.Nodes(2, 8).Add(gangOf(2, 8, none))
		refuse(c, `pods is forbidden: User "`+user+`" cannot `+what)
	}
}
