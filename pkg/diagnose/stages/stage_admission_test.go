package stages_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// former adds a pod of an earlier job of the name, which is being deleted and was to be gone so long ago.
func former(c *clustertest.Cluster, name string, ago time.Duration, finalizers ...string) *corev1.Pod {
	at := clustertest.Ago(ago)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("former-" + name), CreationTimestamp: clustertest.Ago(2 * time.Hour), DeletionTimestamp: &at, Finalizers: finalizers,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: "TFJob", Name: "gang", UID: "former", Controller: ptr.To(true)}}}}
	p.Spec = corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "tensorflow"}}}
	p.Status.Phase = corev1.PodRunning
	c.Put(p)
	return p
}

// formerJob adds a Job of an earlier JobSet of the name, which is being deleted with its pods for so long.
func formerJob(c *clustertest.Cluster, ago time.Duration) {
	at := clustertest.Ago(ago)
	c.Put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-worker-0", UID: "former-job", DeletionTimestamp: &at, Finalizers: []string{metav1.FinalizerDeleteDependents}}})
	p := former(c, "gang-worker-0-0-abcde", ago-30*time.Second, "example.com/hold")
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "gang-worker-0", UID: "former-job", Controller: ptr.To(true)}}
}

// Names that others have are seen without an event: those expire, and some controllers write none.
func TestNamesHeld(t *testing.T) {
	jobSet := func(g *clustertest.Gang) { g.Kind, g.NoGroup = "JobSet", true }
	check(t, []testCase{
		{name: "by pods of an earlier job that a finalizer holds", code: answer.AdmissionDenied, exit: 4, first: "Pods gang-worker-0, gang-worker-1 have the names", alone: true, fix: "clear Pods gang-worker-0, gang-worker-1, or submit under another name",
			wantText: []string{"should have gone 50m ago: it is held by finalizer example.com/hold"}, not: []string{"delete pod gang"}, build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, none))
				former(c, "gang-worker-0", 50*time.Minute, "example.com/hold")
				former(c, "gang-worker-1", 50*time.Minute, "example.com/hold")
			}},
		{name: "by a pod on a node that is away", code: answer.AdmissionDenied, exit: 4, first: "Pod gang-worker-1 has the name", wantText: []string{"only the kubelet of its node can confirm", "have an administrator bring back node"}, not: []string{"--force"}, build: func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
			clustertest.NotReady(c.S.Nodes[0], time.Hour)
			former(c, "gang-worker-1", 50*time.Minute)
		}},
		{name: "by pods that leave in time", code: answer.BelowQuorum, exit: 3, first: "gang-worker-0, gang-worker-1 of an earlier job are being deleted, and those of this one are made after that: at most 20s left", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
			former(c, "gang-worker-0", -20*time.Second)
			former(c, "gang-worker-1", -20*time.Second)
		}},
		{name: "by a pod that a finalizer holds, for some seconds", code: answer.BelowQuorum, exit: 3, not: []string{"at most"},
			first: "gang-worker-0 of an earlier job is being deleted, and those of this one are made after that: gang-worker-0 should have gone 10s ago, it is held by finalizer example.com/hold", build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 20 * time.Second }))
				former(c, "gang-worker-0", 10*time.Second, "example.com/hold")
			}},
		{name: "by a pod of nobody", code: answer.AdmissionDenied, exit: 4, first: "Pod gang-worker-0 has the name", fix: "delete Pod gang-worker-0", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(1, 8, none))
			c.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang-worker-0"}, Status: corev1.PodStatus{Phase: corev1.PodSucceeded}})
		}},
		{name: "by a Job of an earlier JobSet, which waits for its pods", code: answer.AdmissionDenied, exit: 4, first: "Job gang-worker-0 has the name", wantText: []string{"gang-worker-0-0-abcde is stuck in Terminating: it is held by finalizer example.com/hold", "it is being deleted, for 50m"}, fix: "clear Job gang-worker-0",
			build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(gangOf(2, 8, none, jobSet))
				c.S.Jobs = nil
				formerJob(c, 50*time.Minute)
			}},
		{name: "by a Job of an earlier JobSet whose pods have gone", code: answer.AdmissionDenied, exit: 4, wantText: []string{"it is being deleted, for 50m: it waits for finalizer foregroundDeletion"}, fix: "submit under another name, or have kube-controller-manager end the deletion of gang-worker-0", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, jobSet))
			c.S.Jobs = nil
			formerJob(c, 50*time.Minute)
			c.S.Pods = nil
		}},
		{name: "by a Job of an earlier JobSet whose pods have gone, and which another controller keeps", code: answer.AdmissionDenied, exit: 4, wantText: []string{"it waits for finalizer foregroundDeletion, example.com/hold"}, fix: "clear Job gang-worker-0, or submit under another name", build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, jobSet))
			c.S.Jobs = nil
			formerJob(c, 50*time.Minute)
			c.S.Pods, c.S.Jobs[0].Finalizers = nil, []string{metav1.FinalizerDeleteDependents, "example.com/hold"}
		}},
		{name: "by a Job of an earlier JobSet, which goes in time", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Kind = "JobSet" }))
			c.S.Jobs = nil
			formerJob(c, 20*time.Second)
		}},
	})
}

// A namespace that enforces a level of Pod Security refuses pods without an event that lasts.
func TestPodSecurity(t *testing.T) {
	enforce := func(c *clustertest.Cluster, level string) {
		c.S.Namespaces[0].Labels = map[string]string{"pod-security.kubernetes.io/enforce": level}
	}
	privileged := spec(func(p *corev1.PodSpec) {
		p.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	})
	secure := spec(func(p *corev1.PodSpec) {
		p.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
		p.Containers[0].SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	})
	mutating := func(c *clustertest.Cluster) {
		rule := map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "operations": []any{"CREATE"}}
		c.Object(map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": map[string]any{"name": "config"},
			"webhooks": []any{map[string]any{"name": "hook.example.com", "rules": []any{rule}}}})
	}
	check(t, []testCase{
		{name: "a privileged container", code: answer.AdmissionDenied, exit: 4, first: `PodSecurity "baseline:latest" denies the pods: .*privileged`, build: func(c *clustertest.Cluster) {
			enforce(c, "baseline")
			c.Nodes(2, 8).Add(gangOf(2, 8, none, privileged))
		}},
		{name: "what restricted requires", code: answer.AdmissionDenied, exit: 4, first: "runAsNonRoot", fix: "change the pods as PodSecurity", build: func(c *clustertest.Cluster) {
			enforce(c, "restricted")
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
		}},
		{name: "pods that are secure", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			enforce(c, "restricted")
			c.Nodes(2, 8).Add(gangOf(2, 8, none, secure))
		}},
		{name: "pods of the role were accepted", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			enforce(c, "restricted")
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Missing = 1 }))
		}},
		{name: "a webhook may change them, and they were just submitted", code: answer.Fits, exit: 3, build: func(c *clustertest.Cluster) {
			enforce(c, "restricted")
			mutating(c)
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 10 * time.Second }))
		}},
		{name: "they were just submitted, and may be exempt", code: answer.Fits, exit: 3, wantText: []string{`whether the pods are exempt from PodSecurity "restricted:latest"`}, build: func(c *clustertest.Cluster) {
			enforce(c, "restricted")
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 10 * time.Second }))
		}},
		{name: "a label that cannot be read", code: answer.Fits, exit: 3, wantText: []string{"Pod Security, as a label of the namespace cannot be read"}, build: func(c *clustertest.Cluster) {
			enforce(c, "strict")
			c.Nodes(2, 8).Add(gangOf(2, 8, none, func(g *clustertest.Gang) { g.Age = 10 * time.Second }))
		}},
		{name: "a dry run was answered", code: answer.BelowQuorum, exit: 3, build: func(c *clustertest.Cluster) {
			enforce(c, "restricted")
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			c.S.Probes = []snapshot.Probe{{Kind: "Pod", Namespace: "team", Name: "gang-worker-0", Code: 201}}
		}},
	})
}

// A webhook concerns the pods that its selectors select.
func TestWebhookSelectors(t *testing.T) {
	denied := func(c *clustertest.Cluster) { refuse(c, `admission webhook "hook.example.com" denied the request: no`) }
	check(t, []testCase{
		{name: "not those that its objectSelector leaves out", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			webhook(c, "hook.example.com", set(map[string]any{"inject": "yes"}, "objectSelector", "matchLabels"))
			denied(c)
		}},
		{name: "those that it selects by what their controller writes", code: answer.AdmissionDenied, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			webhook(c, "hook.example.com", set(map[string]any{"training.kubeflow.org/job-role": "master"}, "objectSelector", "matchLabels"))
			denied(c)
		}},
		{name: "those that its conditions may match", code: answer.AdmissionDenied, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			webhook(c, "hook.example.com", set([]any{map[string]any{"name": "gpu", "expression": "true"}}, "matchConditions"))
			denied(c)
		}},
		{name: "and names what serves it when it is down", code: answer.WebhookDown, exit: 5, wantText: []string{"Service infra/hook", "Deployment infra/hook has 0 of 1 pods ready", "describe deployment hook"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, none))
			c.Deployment("infra", "hook", "example.com/hook:v1").Status.ReadyReplicas = 0
			refuse(c, `Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "https://hook.infra.svc:443/": EOF`)
		}},
	})
}
