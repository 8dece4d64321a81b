package check

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
)

func stamp(at time.Time) *metav1.Time { return &metav1.Time{Time: at} }

// job adds a TFJob of some age, whose status was written lately or never.
func (s *fixture) job(name string, age time.Duration, seen bool) map[string]any {
	job := map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"namespace": "team", "name": name,
		"creationTimestamp": clustertest.Ago(age).Format(time.RFC3339)}, "spec": map[string]any{}}
	if seen {
		job["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Created", "status": "True", "lastUpdateTime": clustertest.Ago(age).Format(time.RFC3339)}}}
	}
	s.Object(job)
	return job
}

// webhook adds the operator's, which looks at some kinds of job.
func (s *fixture) webhook(resources ...string) {
	var hooks []any
	for _, resource := range resources {
		hooks = append(hooks, map[string]any{"name": "validator." + resource, "rules": []any{map[string]any{"apiGroups": []any{"kubeflow.org"}, "resources": []any{resource}}}})
	}
	s.Object(map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": "validator.training-operator.kubeflow.org"}, "webhooks": hooks})
}

func TestOperatorsAlive(t *testing.T) {
	test(t, Cluster(), "operator-alive", []expected{
		{name: "healthy", status: OK, wantText: []string{"Deployment kubeflow/training-operator (v1.9.4): 1/1 ready"}},
		{name: "it acts on jobs", change: func(s *fixture) { s.job("a", time.Hour, true) }, status: OK},
		{name: "down", change: func(s *fixture) { s.deployment("training-operator").Status.ReadyReplicas = 0 }, status: Fail, wantText: []string{"0/1 ready", "logs deployment/training-operator"}},
		{name: "scaled to zero", change: func(s *fixture) {
			zero := int32(0)
			s.deployment("training-operator").Spec.Replicas = &zero
		}, status: Fail, wantText: []string{"scaled to 0"}},
		{name: "none", change: func(s *fixture) { s.remove("training-operator") }, status: Fail, wantText: []string{"no training operator", "gangctl install operator"}},
		{name: "none, but a controller acts", change: func(s *fixture) {
			s.remove("training-operator")
			s.job("a", time.Minute, true)
		}, status: OK, wantText: []string{"a TFJob's status was written 60s ago"}},
		{name: "none, but its webhook is there", change: func(s *fixture) {
			s.remove("training-operator")
			s.webhook("tfjobs")
		}, status: OK, wantText: []string{"webhook"}},
		{name: "none, and its webhook looks at other kinds", change: func(s *fixture) {
			s.remove("training-operator")
			s.webhook("pytorchjobs")
		}, status: Fail, wantText: []string{"no training operator"}},
		{name: "it does not look at a job", change: func(s *fixture) {
			s.job("young", 10*time.Second, false)
			s.job("old", 10*time.Minute, false)
			s.job("elsewhere", 10*time.Minute, false)["spec"].(map[string]any)["runPolicy"] = map[string]any{"managedBy": "kueue.x-k8s.io/multikueue"}
		}, status: Fail, wantText: []string{"no controller has handled 1 TFJob for over 60s: team/old"}},
		{name: "one that a tenant made", change: func(s *fixture) { s.Deployment("team-a", "training-operator", v194) }, status: Warn,
			wantText: []string{"Deployment team-a/training-operator looks like a training operator"}, never: []string{"2 operators"}},
		{name: "only one that a tenant made", change: func(s *fixture) {
			s.remove("training-operator")
			s.Deployment("team-a", "training-operator", v194)
		}, status: Fail, wantText: []string{"looks like a training operator", "no training operator"}},
		{name: "two", change: func(s *fixture) {
			s.Deployment("other", "training-operator", v194)
			s.binds("training-operator", "other", "default")
		}, status: Fail, wantText: []string{"2 operators act on the same TFJobs"}},
		{name: "two, of which one is scaled to 0", change: func(s *fixture) {
			s.Deployment("other", "old-operator", v194)
			s.binds("training-operator", "other", "default")
			s.stop("old-operator")
		}, status: OK, never: []string{"old-operator"}},
		{name: "two that are scaled to 0", change: func(s *fixture) {
			s.Deployment("other", "old-operator", v194)
			s.binds("training-operator", "other", "default")
			s.stop("old-operator")
			s.stop("training-operator")
		}, status: Fail, wantText: []string{"old-operator (v1.9.4): 0/0 ready: it is scaled to 0"}, never: []string{"2 operators"}},
		{name: "no TFJobs", change: func(s *fixture) { s.S.Server.Resources = []string{} }},
	})
}

func TestOperatorGangs(t *testing.T) {
	test(t, Cluster(), "operator-gang", []expected{
		{name: "off, as advised", status: OK, wantText: []string{"leaves gangs alone; gangctl submit makes the gang"}},
		{name: "ours", change: func(s *fixture) { s.operatorArgs("--gang-scheduler-name=gang-scheduler") }, status: OK, wantText: []string{"makes groups of scheduling.x-k8s.io for scheduler gang-scheduler"}},
		{name: "ours is not there", change: func(s *fixture) {
			s.remove("gang-scheduler")
			s.operatorArgs("--gang-scheduler-name=gang-scheduler")
		}, status: Fail, wantText: []string{"gives no sign of life", "gangctl install scheduler"}, never: []string{"--serve"}},
		{name: "another one is not there", change: func(s *fixture) { s.operatorArgs("--gang-scheduler-name=my-scheduler") }, status: Fail, wantText: []string{"--serve my-scheduler"}},
		{name: "groups that are not served", change: func(s *fixture) { s.operatorArgs("--gang-scheduler-name=volcano") }, status: Fail, wantText: []string{"podgroups.scheduling.volcano.sh"}},
		{name: "a flag without effect", change: func(s *fixture) { s.operatorArgs("--enable-gang-scheduling") }, status: Warn, wantText: []string{"has no effect in v1.9.4"}},
		{name: "of old, with budgets", change: func(s *fixture) {
			s.deployment("training-operator").Spec.Template.Spec.Containers[0].Image = "x/tf_operator:v0.4.0"
			s.operatorArgs("--enable-gang-scheduling")
		}, status: OK, wantText: []string{"PodDisruptionBudget"}},
		{name: "none", change: func(s *fixture) { s.remove("training-operator") }},
	})
}

func TestOperatorVersion(t *testing.T) {
	image := func(image string) func(*fixture) {
		return func(s *fixture) {
			s.deployment("training-operator").Spec.Template.Spec.Containers[0].Image = image
		}
	}
	test(t, Cluster(), "version-operator", []expected{
		{name: "known", status: OK, wantText: []string{"training operator v1.9.4"}},
		{name: "old", change: image("kubeflow/training-operator:v1-e1434f6"), status: Warn, wantText: []string{"v1.5", "cannot suspend jobs"}},
		{name: "of old", change: image("gcr.io/kubeflow-images-public/tf_operator:v0.5.0"), status: Fail, wantText: []string{"gangctl install operator"}},
		{name: "unknown", change: image("mirror.example/training-operator:prod"), status: Warn, wantText: []string{"cannot be determined"}},
		{name: "none", change: func(s *fixture) { s.remove("training-operator") }},
	})
}
