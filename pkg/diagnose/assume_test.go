package diagnose

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
)

// That a scheduler looks at pods of its name may be known from the pods of the gang alone: it counts when they are assumed to be made again.
func TestSchedulerOfAnAssumedCluster(t *testing.T) {
	for _, c := range []struct {
		judged bool
		age    time.Duration
		want   answer.Verdict
	}{{true, time.Minute, answer.FitsNow}, {false, time.Minute, answer.Blocked}, {false, time.Second, answer.FitsNow}} {
		s := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Namespace: "team", Name: "llama", Workers: 4, GPUs: 8, Scheduler: "elsewhere",
			Pod: func(_ int, p *corev1.Pod) {
				p.Status.Conditions, p.CreationTimestamp = nil, clustertest.Ago(c.age)
				if c.judged {
					p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}}
				}
			}}).Done()
		w := view.New(s)
		q := Query{Namespace: "team", Name: "llama"}
		job, err := w.Find(q)
		if err != nil {
			t.Fatal(err)
		}
		changed := whatif.Resubmit(s, w.Gang(job), func(spec *whatif.Spec) { spec.Role("Worker").Replicas = 2 })
		a, err := NewExplainer(s).Assume(changed).Explain(t.Context(), q, Options{NoAdvice: true})
		if err != nil || a.Verdict != c.want {
			t.Errorf("judged %t, %s old: %v, got %s  %s", c.judged, c.age, err, a.Verdict, a.Headline)
		}
	}
}

// An operator may be no Deployment of the cluster. That it runs is known from its webhook, from a job that it has handled lately, and from the one that is to be changed. Where
// nothing shows it, it may be there all the same.
func TestOperatorElsewhere(t *testing.T) {
	handled := clustertest.Gang{Namespace: "team", Name: "llama", Workers: 1, GPUs: 1, Nodes: []string{"n1"}}
	ended := handled
	ended.Job = func(job map[string]any) {
		job["status"] = map[string]any{"startTime": clustertest.Ago(time.Hour).Format(time.RFC3339), "completionTime": clustertest.Ago(30 * time.Minute).Format(time.RFC3339), "conditions": []any{
			map[string]any{"type": "Succeeded", "status": "True", "lastTransitionTime": clustertest.Ago(30 * time.Minute).Format(time.RFC3339)}}}
	}
	for name, c := range map[string]struct {
		add  func(*clustertest.Cluster)
		want answer.Verdict
	}{
		"nothing is seen of it": {func(*clustertest.Cluster) {}, answer.Blocked},
		"its webhook":           {func(c *clustertest.Cluster) { webhook(c, "tfjobs") }, answer.FitsNow},
		"that of other kinds":   {func(c *clustertest.Cluster) { webhook(c, "pytorchjobs") }, answer.Blocked},
		"a job that it runs":    {func(c *clustertest.Cluster) { c.Add(handled) }, answer.FitsNow},
		"a job that has ended":  {func(c *clustertest.Cluster) { c.Add(ended) }, answer.FitsNow},
	} {
		cluster := clustertest.New().Nodes(3, 8)
		cluster.S.Deployments = cluster.S.Deployments[1:]
		c.add(cluster)
		a, err := DryRun(t.Context(), cluster.Done(), unsubmitted(), "team", Options{NoAdvice: true})
		if err != nil || a.Verdict != c.want || a.Verdict == answer.Blocked && (a.Primary.Code != answer.OperatorMissing || a.Confidence.Level != answer.Inferred) {
			t.Errorf("%s: %v, got %s  %s (%s)", name, err, a.Verdict, a.Headline, a.Confidence.Level)
		}
	}
	cluster := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Namespace: "team", Name: "llama", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}})
	cluster.S.Deployments = cluster.S.Deployments[1:]
	s := cluster.Done()
	w := view.New(s)
	q := Query{Namespace: "team", Name: "llama"}
	job, err := w.Find(q)
	if err != nil {
		t.Fatal(err)
	}
	changed := whatif.Resubmit(s, w.Gang(job), func(spec *whatif.Spec) { spec.Role("Worker").Replicas = 1 })
	if a, err := NewExplainer(s).Assume(changed).Explain(t.Context(), q, Options{NoAdvice: true}); err != nil || a.Verdict != answer.FitsNow {
		t.Errorf("the only job, changed: %v, got %s  %s", err, a.Verdict, a.Headline)
	}
}

// webhook adds the Training Operator's, for a kind of job.
func webhook(c *clustertest.Cluster, resource string) {
	c.Object(map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "validator.training-operator.kubeflow.org"},
		"webhooks": []any{map[string]any{"name": "validator", "rules": []any{map[string]any{"resources": []any{resource}}}}}})
}

// What the API server refused of the pods that there are is not about those that are assumed to be made, but for what a webhook denies, which lasts: the event, and the job itself,
// may be of the same second as what was read.
func TestRefusalsBeforeAnAssumedCluster(t *testing.T) {
	type situation struct {
		kind string
		age  time.Duration
	}
	var all []situation
	for _, kind := range []string{"TFJob", "PyTorchJob", "Job", "JobSet"} {
		all = append(all, situation{kind, time.Second}, situation{kind, time.Minute})
	}
	for _, in := range all {
		kind := in.kind
		c := clustertest.New().Nodes(2, 8).Add(clustertest.Gang{Kind: kind, Namespace: "team", Name: "llama", Workers: 4, GPUs: 4, Missing: 1, Age: in.age})
		c.Event(kind, "team", "llama", "the-controller", "FailedCreate", `pods "llama-worker-3" is forbidden: error looking up service account team/trainer: serviceaccount "trainer" not found`, 0)
		s := c.Done()
		s.At = s.At.Add(-time.Second / 2)
		w := view.New(s)
		q := Query{Namespace: "team", Name: "llama"}
		job, err := w.Find(q)
		if err != nil {
			t.Fatal(err)
		}
		before, err := NewExplainer(s).Explain(t.Context(), q, Options{NoAdvice: true})
		if err != nil || before.Verdict != answer.Blocked {
			t.Errorf("%s, %s old, as it is: %v, got %s  %s", kind, in.age, err, before.Verdict, before.Headline)
		}
		changed := whatif.Resubmit(s, w.Gang(job), func(spec *whatif.Spec) { spec.Roles[len(spec.Roles)-1].Replicas = 2 })
		a, err := NewExplainer(s).Assume(changed).Explain(t.Context(), q, Options{NoAdvice: true})
		if err != nil || a.Verdict != answer.FitsNow {
			t.Errorf("%s, %s old, with two workers: %v, got %s  %s", kind, in.age, err, a.Verdict, a.Headline)
		}
	}
}
