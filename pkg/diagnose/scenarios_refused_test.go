package diagnose

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// What is known of a quota by a refusal alone holds for a job that is submitted again, too: nothing that it refuses is offered.
func TestAdviceWithinRefusals(t *testing.T) {
	for _, s := range []scenario{
		{name: "a quota that may not be read", code: answer.NSQuota, exit: 3, offers: []answer.ActionKind{answer.Fewer}, never: []answer.ActionKind{answer.Reshape}, wantText: []string{"2 workers instead of 4"},
			notText: []string{"3 workers", "7 GPUs"}, build: func(c *clustertest.Cluster) {
				c.S.Denied = []snapshot.Denial{{Resource: "resourcequotas"}}
				c.Nodes(4, 8).Add(with(waiting(4, 8), func(g *clustertest.Gang) { g.CPU, g.Missing = "16", 2 }))
				c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreatePod",
					`Error creating: pods "gang-worker-2" is forbidden: exceeded quota: q, requested: requests.cpu=16,requests.nvidia.com/gpu=8, used: requests.cpu=60,requests.nvidia.com/gpu=24, limited: requests.cpu=64,requests.nvidia.com/gpu=32`, time.Second)
			}},
		{name: "a quota of Jobs", code: answer.NSQuotaTooSmall, exit: 6, offers: []answer.ActionKind{answer.Quota}, never: []answer.ActionKind{answer.Reshape, answer.Trim, answer.Fewer},
			wantText: []string{"allows 1 jobs.batch in all, and the gang needs 2"}, build: func(c *clustertest.Cluster) {
				namedQuota(c, "cap", "count/jobs.batch", "1", "1")
				c.Nodes(4, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
					g.Kind, g.NoGroup, g.More = "JobSet", true, []clustertest.Role{{Name: "Other", Replicas: 2, GPUs: 8, Missing: 2}}
				}))
				c.S.Jobs = slices.DeleteFunc(c.S.Jobs, func(j *batchv1.Job) bool { return strings.Contains(j.Name, "other") })
				c.Event("JobSet", "team", "gang", "jobset-controller", "JobCreationFailed",
					`jobs.batch "gang-other-0" is forbidden: exceeded quota: cap, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1`, time.Second)
			}},
		{name: "claims of a StatefulSet", code: answer.NSQuotaTooSmall, exit: 6, never: []answer.ActionKind{answer.Reshape, answer.AddNodes, answer.Trim}, wantText: []string{"allows 1 persistentvolumeclaims in all, and the gang needs 4"},
			build: func(c *clustertest.Cluster) {
				namedQuota(c, "claims", "persistentvolumeclaims", "1", "1")
				c.Nodes(4, 8).Add(with(waiting(4, 8), func(g *clustertest.Gang) { g.Missing = 3 }))
				ofStatefulSet(c, 4)
				c.Event("StatefulSet", "team", "gang", "statefulset-controller", "FailedCreate",
					`create Claim data-gang-1 for Pod gang-1 in StatefulSet gang failed error: persistentvolumeclaims "data-gang-1" is forbidden: exceeded quota: claims, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=1, limited: persistentvolumeclaims=1`, time.Second)
			}},
	} {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

// ofStatefulSet has the pods of the gang made by a StatefulSet of so many.
func ofStatefulSet(c *clustertest.Cluster, replicas int32) {
	yes := true
	meta := metav1.ObjectMeta{Namespace: "team", Name: "gang", UID: "set"}
	delete(c.S.Custom, schema.GroupKind{Group: "kubeflow.org", Kind: "TFJob"})
	for _, group := range c.S.Custom[schema.GroupKind{Group: "scheduling.x-k8s.io", Kind: "PodGroup"}] {
		group.SetOwnerReferences(nil)
	}
	for _, p := range c.S.Pods {
		if p.Namespace == "team" {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "gang", UID: meta.UID, Controller: &yes}}
		}
	}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	c.S.StatefulSets = append(c.S.StatefulSets, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Replicas: &replicas, PodManagementPolicy: appsv1.ParallelPodManagement, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim}}})
}

// A dry run without one of the API server counts what would be submitted, and reports what it does not evaluate of admission.
func TestDryRunOfAdmission(t *testing.T) {
	submitted := clustertest.New().Add(with(waiting(2, 8), none))
	job := submitted.S.Custom[view.New(submitted.Done()).Jobs()[0].Kind.GroupKind()][0]
	unstructured.RemoveNestedField(job.Object, "status")
	for _, tt := range []struct {
		name       string
		build      func(*clustertest.Cluster)
		code       answer.Code
		exit       int
		text       string
		unmodelled string
	}{
		{name: "no more jobs of the kind", code: answer.NSQuotaTooSmall, exit: 6, text: "allows 0 tfjobs.kubeflow.org in all", build: func(c *clustertest.Cluster) { namedQuota(c, "q", "count/tfjobs.kubeflow.org", "0", "0") }},
		{name: "no more groups", code: answer.NSQuotaTooSmall, exit: 6, text: "allows 0 podgroups.scheduling.x-k8s.io in all", build: func(c *clustertest.Cluster) {
			c.GangScheduler("gang")
			namedQuota(c, "q", "count/podgroups.scheduling.x-k8s.io", "0", "0")
		}},
		{name: "enough of them", code: answer.Fits, exit: 0, build: func(c *clustertest.Cluster) { namedQuota(c, "q", "count/tfjobs.kubeflow.org", "1", "0") }},
		{name: "too few Services", code: answer.NSQuotaTooSmall, exit: 6, text: "allows 1 services in all, and the gang needs 2", build: func(c *clustertest.Cluster) { namedQuota(c, "q", "services", "1", "0") }},
		{name: "Pod Security, from which they may be exempt", code: answer.Fits, exit: 0, unmodelled: `whether the pods are exempt from PodSecurity "restricted:latest", or changed before it`, build: func(c *clustertest.Cluster) {
			c.S.Namespaces[0].Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
		}},
		{name: "Pod Security, and a webhook that may change the pods before", code: answer.Fits, exit: 0, unmodelled: `whether the pods are exempt from PodSecurity "restricted:latest", or changed before it; what webhooks make of the pods (hook.example.com)`, build: func(c *clustertest.Cluster) {
			c.S.Namespaces[0].Labels = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
			rule := map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "operations": []any{"CREATE"}}
			c.Object(map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": map[string]any{"name": "config"},
				"webhooks": []any{map[string]any{"name": "hook.example.com", "rules": []any{rule}}}})
		}},
		{name: "a webhook", code: answer.Fits, exit: 0, unmodelled: "what webhooks make of the pods (hook.example.com)", build: func(c *clustertest.Cluster) {
			rule := map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "operations": []any{"CREATE"}}
			c.Object(map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": map[string]any{"name": "config"},
				"webhooks": []any{map[string]any{"name": "hook.example.com", "rules": []any{rule}}}})
		}},
		{name: "a webhook of other objects", code: answer.Fits, exit: 0, build: func(c *clustertest.Cluster) {
			rule := map[string]any{"apiGroups": []any{""}, "resources": []any{"services"}, "operations": []any{"CREATE"}}
			c.Object(map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": map[string]any{"name": "config"},
				"webhooks": []any{map[string]any{"name": "hook.example.com", "rules": []any{rule}}}})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := clustertest.New().Nodes(2, 8)
			tt.build(c)
			a, err := DryRun(context.Background(), c.Done(), job, "team", Options{})
			if err != nil {
				t.Fatal(err)
			}
			if a.Exit != tt.exit || a.Primary.Code != tt.code || !strings.Contains(a.Primary.Message, tt.text) {
				t.Errorf("got %s exit %d: %s", a.Primary.Code, a.Exit, a.Primary.Message)
			}
			if got := strings.Join(a.Confidence.Unmodelled, "; "); got != tt.unmodelled || (a.Confidence.Level == answer.Heuristic) != (tt.unmodelled != "") {
				t.Errorf("%s, not evaluated: %q", a.Confidence.Level, got)
			}
		})
	}
}
