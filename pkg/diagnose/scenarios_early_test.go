package diagnose

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

var set = clustertest.Set

func with(g clustertest.Gang, change func(*clustertest.Gang)) clustertest.Gang {
	change(&g)
	return g
}

func requestScenarios() []scenario {
	return []scenario{
		{name: "namespace is being deleted", code: answer.NamespaceGone, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(waiting(2, 8))
			c.S.Namespaces[0].Status.Phase = corev1.NamespaceTerminating
		}},
		{name: "suspended by hand", code: answer.JobSuspended, exit: 4, offers: []answer.ActionKind{answer.Fix}, never: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing, g.Job = 2, set(true, "spec", "runPolicy", "suspend") }))
		}},
		{name: "failed", code: answer.JobFailed, exit: 9, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Missing = 2
				g.Job = set([]any{map[string]any{"type": "Failed", "status": "True", "reason": "TFJobFailed", "message": "worker-1 exit 1", "lastTransitionTime": "2026-11-21T13:00:00Z"}}, "status", "conditions")
			}))
		}, wantText: []string{"worker-1 exit 1", "60m"}},
		{name: "wrong container name", code: answer.JobInvalid, exit: 4, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Missing, g.Spec = 2, func(p *corev1.PodSpec) { p.Containers[0].Name = "main" }
			}))
		}},
		{name: "the API server refuses the job", code: answer.JobInvalid, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing = 2 }))
			c.S.Probes = []snapshot.Probe{{Kind: "TFJob", Namespace: "team", Name: "gang", Code: 422, Message: "metadata.name: Invalid value"}}
		}},
		{name: "it is being deleted, and a finalizer holds it", code: answer.JobTerminating, exit: 5, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing, g.Job = 2, deletedFor(2*time.Minute, "example.com/audit") }))
		}, wantText: []string{"gang is being deleted, for 2m: it waits for finalizer example.com/audit", "take finalizer example.com/audit off gang", "kubectl -n team patch tfjob.kubeflow.org gang"}, notText: []string{"would take", "training-operator"}},
		{name: "it is being deleted, and a pod is stuck", code: answer.JobTerminating, exit: 5, offers: []answer.ActionKind{answer.Fix}, never: []answer.ActionKind{answer.AddNodes, answer.Reshape, answer.Fewer}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Missing, g.NoGroup, g.Nodes, g.Job = 1, true, []string{"n1"}, deletedFor(40*time.Minute, metav1.FinalizerDeleteDependents)
				g.Pod = func(_ int, p *corev1.Pod) {
					at := clustertest.Ago(39 * time.Minute)
					p.DeletionTimestamp, p.Finalizers = &at, []string{"example.com/upload"}
				}
			}))
		}, wantText: []string{"gang-worker-0 has not gone, and should have", "39m ago: it is held by finalizer example.com/upload", "clear gang-worker-0", "kubectl -n team patch pod gang-worker-0"}, notText: []string{"made again", "PodGroup"}},
		{name: "it is being deleted, and its pods are in their grace", code: answer.JobTerminating, exit: 3, never: []answer.ActionKind{answer.AddNodes, answer.Reshape, answer.Fewer, answer.Trim, answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Nodes, g.Job = []string{"n1", "n2"}, deletedFor(10*time.Second, metav1.FinalizerDeleteDependents)
				g.Pod = func(_ int, p *corev1.Pod) {
					at := clustertest.Ago(-290 * time.Second)
					p.DeletionTimestamp = &at
				}
			}))
		}, wantText: []string{"gang is being deleted, for 10s: it waits for gang-worker-0, gang-worker-1 to end, within 4m50s"}, notText: []string{"resize"}},
		{name: "no operator", code: answer.OperatorMissing, exit: 5, build: func(c *clustertest.Cluster) {
			c.S.Deployments = c.S.Deployments[1:]
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing, g.NoGroup, g.Job = 2, true, set(map[string]any{}, "status") }))
		}},
		{name: "operator scaled to zero", code: answer.OperatorDown, exit: 5, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			zero := int32(0)
			c.S.Deployments[0].Spec.Replicas, c.S.Deployments[0].Status.ReadyReplicas = &zero, 0
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing, g.NoGroup, g.Job = 2, true, set(map[string]any{}, "status") }))
		}},
		{name: "operator does not look", code: answer.OperatorDown, exit: 5, wantText: []string{"has not looked"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing, g.NoGroup, g.Job = 2, true, set(map[string]any{}, "status") }))
		}},
		{name: "operator may not create pods", code: answer.OperatorRBAC, exit: 5, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing = 2 }))
			refuse(c, `pods is forbidden: User "system:serviceaccount:kubeflow:training-operator" cannot create resource "pods" in API group "" in the namespace "team"`)
		}},
		{name: "nodes may not be listed", code: answer.NoPermission, exit: 8, build: func(c *clustertest.Cluster) {
			c.S.Denied = []snapshot.Denial{{Resource: "nodes"}}
			c.Add(waiting(2, 8))
		}},
	}
}

// deletedFor has a job be in its deletion, which a finalizer holds up.
func deletedFor(d time.Duration, finalizer string) func(map[string]any) {
	return func(job map[string]any) {
		set(clustertest.Ago(d).UTC().Format(time.RFC3339), "metadata", "deletionTimestamp")(job)
		set([]any{finalizer}, "metadata", "finalizers")(job)
	}
}

// refuse is an event that a pod was not accepted.
func refuse(c *clustertest.Cluster, message string) {
	c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreatePod", "Error creating: "+message, 4*time.Second)
}

func none(g *clustertest.Gang) { g.Missing = g.Workers }

func quota(c *clustertest.Cluster, hard, used string) {
	c.Put(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q"},
		Spec:   corev1.ResourceQuotaSpec{Hard: clustertest.List("requests.nvidia.com/gpu", hard)},
		Status: corev1.ResourceQuotaStatus{Hard: clustertest.List("requests.nvidia.com/gpu", hard), Used: clustertest.List("requests.nvidia.com/gpu", used)}})
}

func podScenarios() []scenario {
	return []scenario{
		{name: "quota used by another job", code: answer.NSQuota, exit: 3, offers: []answer.ActionKind{answer.Wait, answer.Quota, answer.Fewer}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(clustertest.Gang{Name: "other", Workers: 1, GPUs: 8, Nodes: []string{"n1"}})
			quota(c, "16", "8")
			c.Add(with(waiting(2, 8), none))
		}},
		{name: "quota below the gang", code: answer.NSQuotaTooSmall, exit: 6, offers: []answer.ActionKind{answer.Quota, answer.Fewer}, never: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8)
			quota(c, "8", "0")
			c.Add(with(waiting(2, 8), none))
		}},
		{name: "quota makes a field mandatory", code: answer.QuotaNeedsField, exit: 4, build: func(c *clustertest.Cluster) {
			quota(c, "80", "0")
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
			refuse(c, `pods "gang-worker-0" is forbidden: failed quota: q: must specify limits.cpu for: tensorflow`)
		}},
		{name: "limit range", code: answer.LimitRange, exit: 4, offers: []answer.ActionKind{answer.Trim}, build: func(c *clustertest.Cluster) {
			c.Put(&corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "caps"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: clustertest.List("cpu", "4")}}}})
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
		}},
		{name: "a webhook denies", code: answer.AdmissionDenied, exit: 4, wantText: []string{"team label"}, never: []answer.ActionKind{answer.Wait, answer.Fewer}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
			refuse(c, `admission webhook "policy.example.com" denied the request: missing team label`)
		}},
		{name: "pod security denies", code: answer.AdmissionDenied, exit: 4, wantText: []string{"PodSecurity"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
			refuse(c, `pods "gang-worker-0" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`)
		}},
		{name: "a webhook is down", code: answer.WebhookDown, exit: 5, wantText: []string{"Service infra/hook"}, build: func(c *clustertest.Cluster) {
			c.Object(map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": map[string]any{"name": "m"},
				"webhooks": []any{map[string]any{"name": "m.example.com", "clientConfig": map[string]any{"service": map[string]any{"name": "hook", "namespace": "infra"}}}}})
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
			refuse(c, `Internal error occurred: failed calling webhook "m.example.com": failed to call webhook: Post "https://hook.infra.svc": dial tcp: connection refused`)
		}},
		{name: "priority class", code: answer.PriorityMissing, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
			refuse(c, `pods "gang-worker-0" is forbidden: no PriorityClass with name golden was found`)
		}, offers: []answer.ActionKind{answer.Fix}},
		{name: "service account", code: answer.AccountMissing, exit: 4, offers: []answer.ActionKind{answer.Fix}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
			refuse(c, `pods "gang-worker-0" is forbidden: error looking up service account team/trainer: serviceaccount "trainer" not found`)
		}},
		{name: "service account made since", code: answer.BelowQuorum, exit: 3, build: func(c *clustertest.Cluster) {
			c.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "trainer"}})
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
			refuse(c, `pods "gang-worker-0" is forbidden: error looking up service account team/trainer: serviceaccount "trainer" not found`)
		}},
		{name: "runtime class", code: answer.RuntimeMissing, exit: 4, wantText: []string{"kata"}, build: func(c *clustertest.Cluster) {
			c.Put(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}})
			c.Nodes(2, 8).Add(with(waiting(2, 8), none))
			refuse(c, `pods "gang-worker-0" is forbidden: pod rejected: RuntimeClass "gvisor" not found`)
		}},
	}
}

func groupScenarios() []scenario {
	return []scenario{
		{name: "pods name a group that is not there", code: answer.PodGroupMissing, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(waiting(2, 8))
			c.S.Custom[groupKind("scheduling.x-k8s.io")] = nil
		}},
		{name: "the group is refused", code: answer.PodGroupMissing, exit: 5, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing, g.NoGroup = 2, true }))
			c.S.Probes = []snapshot.Probe{{Kind: "PodGroup", Namespace: "team", Name: "gang", Code: 403, Message: "podgroups is forbidden"}}
		}},
		{name: "the operator made none", code: answer.PodGroupMissing, exit: 5, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing, g.NoGroup = 2, true }))
		}},
		{name: "the group is of an earlier job", code: answer.PodGroupForeign, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(waiting(2, 8))
			group := c.S.Custom[groupKind("scheduling.x-k8s.io")][0]
			refs := group.GetOwnerReferences()
			refs[0].UID = "gone"
			group.SetOwnerReferences(refs)
		}},
		{name: "two dialects", code: answer.Fits, exit: 3, wantText: []string{"PodGroup.scheduling.volcano.sh gang is not read"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
			other := c.S.Custom[groupKind("scheduling.x-k8s.io")][0].DeepCopy()
			other.SetAPIVersion("scheduling.volcano.sh/v1beta1")
			other.SetUID("other")
			c.Put(other)
		}},
		{name: "more members than replicas", code: answer.MinMemberTooHigh, exit: 4, offers: []answer.ActionKind{answer.Fix}, never: []answer.ActionKind{answer.Wait}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Min = 3 }))
		}},
		{name: "pods are being made", code: answer.BelowQuorum, exit: 3, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing, g.Age = 1, 5*time.Second }))
		}},
	}
}
