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

// What the API server refused of the pods that there are is not about those that are assumed to be made: the event, and the job itself, may be of the same
// second as what was read.
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
		c.Event(kind, "team", "llama", "the-controller", "FailedCreate", `admission webhook "policy.example.com" denied the request: missing team label`, 0)
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
