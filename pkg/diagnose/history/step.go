package history

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/container"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Step is one in the life of a gang.
type Step struct {
	Name string `json:"name"`
	// At is when the last member took it; nil while one has not, or where its evidence is gone with its pod.
	At *time.Time `json:"at,omitempty"`
}

// Condition is what the job's controller noted on it.
type Condition struct {
	Type    string     `json:"type"`
	Status  string     `json:"status"`
	At      *time.Time `json:"at,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
}

// steps are those of the gang as a whole.
func steps(g *gang.Gang, r *Report) []Step {
	end := Step{Name: "done", At: r.Job.Ended}
	if g.End != nil && g.End.Failed {
		end.Name = "failed"
	}
	return []Step{
		{"submitted", r.Job.Created},
		{"created", whole(g, func(p *corev1.Pod) time.Time { return p.CreationTimestamp.Time })},
		{"scheduled", whole(g, func(p *corev1.Pod) time.Time {
			if p.Spec.NodeName == "" {
				return time.Time{}
			}
			return placedAt(p)
		})},
		{"started", whole(g, func(p *corev1.Pod) time.Time {
			if s := status(p, ""); s != nil {
				at, _ := container.Run(s)
				return at
			}
			return time.Time{}
		})},
		{"ready", whole(g, func(p *corev1.Pod) time.Time {
			if ready, since := readiness(p); ready {
				return since
			}
			return time.Time{}
		})},
		end,
	}
}

// whole is when the last member came so far; nil while one has not.
func whole(g *gang.Gang, when func(*corev1.Pod) time.Time) *time.Time {
	var last time.Time
	for _, m := range g.Members {
		if m.Pod == nil {
			return nil
		}
		at := when(m.Pod)
		if at.IsZero() {
			return nil
		}
		if at.After(last) {
			last = at
		}
	}
	return known(last)
}

// conditions reads those of the job, whatever its kind.
func conditions(w *view.View, g *gang.Gang) []Condition {
	all := []Condition{}
	for _, u := range w.Snap.Custom[g.Kind.GroupKind()] {
		if u.GetNamespace() != g.Meta.Namespace || u.GetName() != g.Meta.Name {
			continue
		}
		fields := gang.Fields{Object: u}
		for _, c := range fields.List("status", "conditions") {
			condition := gang.ConditionOf(c)
			kind, _ := c["type"].(string)
			state, _ := c["status"].(string)
			all = append(all, Condition{kind, state, known(condition.At), condition.Reason, condition.Message})
		}
	}
	for _, j := range w.Snap.Jobs {
		if g.Kind.Group != "batch" || j.Namespace != g.Meta.Namespace || j.Name != g.Meta.Name {
			continue
		}
		for _, c := range j.Status.Conditions {
			all = append(all, Condition{string(c.Type), string(c.Status), known(c.LastTransitionTime.Time), c.Reason, c.Message})
		}
	}
	slices.SortStableFunc(all, func(a, b Condition) int { return cmp.Or(compare(a.At, b.At), cmp.Compare(a.Type, b.Type)) })
	return all
}

// compare orders times; those that are not known come last.
func compare(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Compare(*b)
}
