package stages_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func TestRequest(t *testing.T) {
	check(t, []testCase{
		{name: "namespace is being deleted, and reports what is left", code: answer.NamespaceGone, exit: 4, first: "namespace team is being deleted", wantText: []string{"Some resources are remaining: pods. has 2"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8))
			ns := c.S.Namespaces[0]
			ns.Status.Phase = corev1.NamespaceTerminating
			ns.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "Some resources are remaining: pods. has 2 resource instances"}}
		}},
		{name: "another namespace is being deleted", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
			c.Namespace("other").Status.Phase = corev1.NamespaceTerminating
		}},
		{name: "only the refusal names the namespace", code: answer.NamespaceGone, exit: 4, first: "namespace team is being deleted", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			c.S.Namespaces, c.S.Denied = nil, []snapshot.Denial{{Resource: "namespaces"}}
			refuse(c, `pods "gang-worker-0" is forbidden: unable to create new content in namespace team because it is being terminated`)
		}},
		{name: "nodes may not be listed, and the scheduler's message is quoted", code: answer.NoPermission, exit: 8, first: "may not list nodes", wantText: []string{"2/2 tasks in gang unschedulable"}, build: func(c *clustertest.Cluster) {
			c.S.Denied = []snapshot.Denial{{Resource: "nodes"}}
			c.Queue("q", "Open", nil)
			c.Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Volcano = "q"
				g.Group = set([]any{clustertest.Condition("Unschedulable", "True", "NotEnoughResources", "2/2 tasks in gang unschedulable", time.Minute)}, "status", "conditions")
			}))
		}},
		{name: "pods of other namespaces may not be listed", code: answer.NoPermission, exit: 8, first: "may not list pods in all namespaces", build: func(c *clustertest.Cluster) {
			c.S.Denied = []snapshot.Denial{{Resource: "pods", ExceptNamespaces: []string{"team"}}}
			c.Nodes(2, 8).Add(gangOf(2, 8))
		}},
		{name: "what is certain without rights is reported first", code: answer.NSQuotaTooSmall, exit: 6, also: []answer.Code{answer.NoPermission}, build: func(c *clustertest.Cluster) {
			c.S.Denied = []snapshot.Denial{{Resource: "nodes"}}
			quota(c, "q", clustertest.List("requests.nvidia.com/gpu", "8"), nil)
			c.Add(gangOf(2, 8, none))
		}},
	})
}

func TestJob(t *testing.T) {
	suspended := func(g *clustertest.Gang) { none(g); g.Job = set(true, "spec", "runPolicy", "suspend") }
	failed := func(reason, message string) func(map[string]any) {
		return set([]any{clustertest.Condition("Failed", "True", reason, message, 2*time.Hour)}, "status", "conditions")
	}
	check(t, []testCase{
		{name: "PyTorchJob suspended by hand", code: answer.JobSuspended, exit: 4, fix: "resume", not: []string{"Kueue"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, suspended, func(g *clustertest.Gang) { g.Kind = "PyTorchJob" }))
		}},
		{name: "MPIJob suspended by hand", code: answer.JobSuspended, exit: 4, fix: "resume", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Kind, g.More = "MPIJob", []clustertest.Role{{Name: "Launcher", Replicas: 1}}
			}, suspended))
		}},
		{name: "its RayCluster is suspended, and it is not", code: answer.JobSuspended, exit: 4, first: "RayCluster gang-[a-z0-9]+, which was made of gang, is suspended, and gang is not", fix: "resume RayCluster", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Kind = "RayJob" }))
			set(true, "spec", "suspend")(c.S.Custom[kindOf("ray.io", "RayCluster")][0].Object)
		}},
		{name: "rejected by its controller", code: answer.JobInvalid, exit: 4, first: "the controller does not accept gang: The RayJob spec is invalid", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Kind = "RayJob" }))
			c.Event("RayJob", "team", "gang", "rayjob-controller", "InvalidRayJobSpec", "The RayJob spec is invalid team/gang: backoffLimit must be a positive integer", time.Minute)
		}},
		{name: "an earlier job of the name was rejected", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.JobInvalid}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Kind = "RayJob" }))
			c.Event("RayJob", "team", "gang", "rayjob-controller", "InvalidRayJobSpec", "The RayJob spec is invalid team/gang: backoffLimit must be a positive integer", 24*time.Hour)
		}},
		{name: "rejected until it was corrected", code: answer.AdmissionDenied, exit: 4, never: []answer.Code{answer.JobInvalid}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Kind = "RayJob" }))
			c.Event("RayJob", "team", "gang", "rayjob-controller", "InvalidRayJobSpec", "The RayJob spec is invalid team/gang: backoffLimit must be a positive integer", time.Minute)
			c.Event("RayJob", "team", "gang", "rayjob-controller", "FailedToCreateRayCluster", `Failed to create: admission webhook "policy.example.com" denied the request: missing team label`, 4*time.Second)
		}},
		{name: "Job suspended by hand", code: answer.JobSuspended, exit: 4, fix: "resume", build: func(c *clustertest.Cluster) {
			yes := true
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) {
				g.Kind, g.BatchJob = "Job", func(j *batchv1.Job) { j.Spec.Suspend = &yes }
			}))
		}},
		{name: "it goes, and its pods have not been deleted", code: answer.JobTerminating, exit: 5, alone: true, first: "deletes what it owns first, gang-worker-0, gang-worker-1, and has not", not: []string{"fits"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, job(deletedFor(2*time.Minute, "foregroundDeletion"))))
		}},
		{name: "it has only just been deleted", code: answer.JobTerminating, exit: 3, alone: true, first: "for 30s: it waits for finalizer example.com/audit", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, job(deletedFor(30*time.Second, "example.com/audit"))))
		}},
		{name: "it goes, and runs until then", exit: 0, wantText: []string{"it is being deleted, for 2m"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, job(deletedFor(2*time.Minute, "example.com/audit")), func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n2"} }))
		}},
		{name: "a Job goes", code: answer.JobTerminating, exit: 3, first: "it waits for finalizer batch.example.com/x", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) {
				g.Kind, g.BatchJob = "Job", func(j *batchv1.Job) {
					at := clustertest.Ago(30 * time.Second)
					j.DeletionTimestamp, j.Finalizers = &at, []string{"batch.example.com/x"}
				}
			}))
		}},
		{name: "it has failed, and one of its pods was evicted", code: answer.JobFailed, exit: 9, wantText: []string{"worker-1 on n2: Evicted: The node was low on resource: memory"}, not: []string{"kubectl.* logs"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, job(set([]any{clustertest.Condition("Failed", "True", "TFJobFailed", "TFJob gang has failed because 1 Worker replica(s) failed", 5*time.Minute)}, "status", "conditions")), func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2"}
				g.Pod = func(i int, p *corev1.Pod) {
					if i == 1 {
						p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}
					}
				}
			}))
		}},
		{name: "a resize that was interrupted", code: answer.JobSuspended, exit: 4, first: "a resize of gang was interrupted", fix: "complete the resize",
			wantText: []string{"gangctl resize gang -n team", "gangctl resize gang --abort -n team"}, not: []string{"a user has to resume it", "kubectl"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 8, Missing: 2, Job: func(j map[string]any) {
					set(true, "spec", "runPolicy", "suspend")(j)
					set(map[string]any{"gangctl.dev/resize": `{"change":{"roles":[{"name":"Worker","replicas":1}]},"min":1,"resume":true}`}, "metadata", "annotations")(j)
				}})
			}},
		{name: "a resize that cannot be read", code: answer.JobSuspended, exit: 4, first: "a resize of gang was interrupted", not: []string{"kubectl"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 8, Missing: 2, Job: func(j map[string]any) {
				set(true, "spec", "runPolicy", "suspend")(j)
				set(map[string]any{"gangctl.dev/resize": "rm"}, "metadata", "annotations")(j)
			}})
		}},
		{name: "suspended since", code: answer.JobSuspended, exit: 4, wantText: []string{"3h"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, job(func(j map[string]any) {
				set(true, "spec", "runPolicy", "suspend")(j)
				set([]any{clustertest.Condition("Suspended", "True", "TFJobSuspended", "TFJob gang is suspended.", 3*time.Hour)}, "status", "conditions")(j)
			})))
		}},
		{name: "suspended by Kueue, which left no label", code: answer.QueueNotFound, exit: 4, never: []answer.Code{answer.JobSuspended}, not: []string{"resume"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, suspended, ungrouped))
			c.LocalQueue("lq", "cq")
			c.ClusterQueue("cq", "", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: "16"})
			c.Workload("gang", "lqq", time.Minute)
		}},
		{name: "failed, and a pod shows which member", code: answer.JobFailed, exit: 9, first: "1 Worker replica", wantText: []string{"worker-1", "exit code 137", "OOMKilled", "logs gang-worker-1"}, never: []answer.Code{answer.CrashLoop}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, job(failed("TFJobFailed", "TFJob team/gang has failed because 1 Worker replica(s) failed.")), func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2"}
				g.Pod = func(i int, p *corev1.Pod) {
					if i == 1 {
						p.Status.Phase = corev1.PodFailed
						p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled", FinishedAt: clustertest.Ago(2 * time.Hour)}}
					}
				}
			}))
		}},
		{name: "Job failed", code: answer.JobFailed, exit: 9, first: "backoff limit", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) {
				g.Kind, g.BatchJob = "Job", func(j *batchv1.Job) {
					j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit", LastTransitionTime: clustertest.Ago(time.Hour)}}
				}
			}))
		}},
		{name: "JobSet failed, and no pod is left that shows why", code: answer.JobFailed, exit: 9, wantText: []string{"logs -l jobset.sigs.k8s.io/jobset-name=gang"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) { g.Kind = "JobSet" },
				job(set([]any{clustertest.Condition("Failed", "True", "FailedJobs", "jobset failed due to one or more job failures", time.Hour)}, "status", "conditions"))))
		}},
		{name: "ended well", exit: 0, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, job(set([]any{clustertest.Condition("Succeeded", "True", "TFJobSucceeded", "", time.Hour)}, "status", "conditions"))))
		}},
		{name: "PyTorchJob with another container", code: answer.JobInvalid, exit: 4, first: "no container named pytorch", fix: "rename container", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Kind = "PyTorchJob" }, spec(func(p *corev1.PodSpec) { p.Containers[0].Name = "train" })))
		}},
		{name: "MPIJob with any container", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Kind, g.Age, g.More = "MPIJob", 20*time.Second, []clustertest.Role{{Name: "Launcher", Replicas: 1}}
			}, spec(func(p *corev1.PodSpec) { p.Containers[0].Name = "train" })))
		}},
		{name: "one role of two is invalid", code: answer.JobInvalid, exit: 4, first: "PS", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.More = []clustertest.Role{{Name: "PS", Replicas: 1, Spec: func(p *corev1.PodSpec) { p.Containers[0].Name = "ps" }}}
			}, none))
		}},
		{name: "a Job of no pods", code: answer.JobInvalid, exit: 4, first: "its parallelism is 0", wantText: []string{"parallelism.*1"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(0, 8, ungrouped, func(g *clustertest.Gang) { g.Kind = "Job" }))
		}},
		{name: "it fails before it starts", code: answer.NodesBusy, exit: 3, wantText: []string{"it fails at 14:50, in 50m, if it has not completed by then: its activeDeadlineSeconds .60m|1h. count from its start", "it has failed 5 times, and fails for good after more than 6 .backoffLimit."}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8, ungrouped, func(g *clustertest.Gang) {
				g.Kind, g.BatchJob = "Job", func(j *batchv1.Job) {
					j.Spec.ActiveDeadlineSeconds, j.Status.Failed, j.Spec.BackoffLimit = ptr.To[int64](3600), 5, ptr.To[int32](6)
				}
			}))
		}},
		{name: "no members", code: answer.JobInvalid, exit: 4, first: "0 replicas", build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(gangOf(0, 8, func(g *clustertest.Gang) { g.Min = 1 })) }},
		{name: "the operator calls the spec invalid", code: answer.JobInvalid, exit: 4, first: "chief and master", wantText: []string{"120m ago"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, job(failed("InvalidTFJobSpec", "more than 1 chief and master found"))))
		}},
	})
}

// deletedFor has a job be in its deletion, which a finalizer holds up.
func deletedFor(d time.Duration, finalizer string) func(map[string]any) {
	return func(job map[string]any) {
		set(clustertest.Ago(d).UTC().Format(time.RFC3339), "metadata", "deletionTimestamp")(job)
		set([]any{finalizer}, "metadata", "finalizers")(job)
	}
}

// What is left of a job that has failed is named, and how it is freed; and why one is not let go that is being deleted.
func TestAfterTheEnd(t *testing.T) {
	ended := func(ago time.Duration) func(map[string]any) {
		return set([]any{clustertest.Condition("Failed", "True", "TFJobFailed", "it failed", ago)}, "status", "conditions")
	}
	up := func(g *clustertest.Gang) { g.Nodes, g.Age = []string{"n1", "n2"}, 10*time.Minute }
	check(t, []testCase{
		{name: "members that hold on", code: answer.JobFailed, exit: 9, wantText: []string{"what they hold is free when the job is deleted: kubectl -n team delete tfjob.kubeflow.org/gang"}, not: []string{"came up after that"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, up, job(ended(5*time.Minute))))
		}},
		{name: "members that came after it", code: answer.JobFailed, exit: 9, wantText: []string{"its members came up after that, the first 9m58s ago, and run: they hold 16 GPUs"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, up, job(ended(2*time.Hour))))
		}},
		{name: "a member that its node ended", code: answer.JobFailed, exit: 9, wantText: []string{"worker-0 on n1: Terminated: Pod was terminated in response to imminent node shutdown"}, not: []string{"SIGKILL", "logs"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, up, job(ended(5*time.Minute)), pods(func(i int, p *corev1.Pod) {
				if i == 0 {
					p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Terminated", "Pod was terminated in response to imminent node shutdown."
					p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: clustertest.Ago(6 * time.Minute)}}
				}
			})))
		}},
		{name: "the controller cannot finish a deletion", code: answer.JobTerminating, exit: 5, wantText: []string{"cannot go on .FailedToCreateRedisCleanupJob, 1 time, last 10m ago.: .*warden", "off gang, if that cannot be mended"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, ungrouped, func(g *clustertest.Gang) {
				g.Kind, g.Age, g.Job = "RayCluster", 25*time.Hour, deletedFor(20*time.Hour, "ray.io/gcs-ft-redis-cleanup-finalizer")
			}))
			c.Event("RayCluster", "team", "gang", "raycluster-controller", "FailedToCreateRedisCleanupJob", `admission webhook "warden" denied the request`, 10*time.Minute).Type = corev1.EventTypeWarning
		}},
	})
}
