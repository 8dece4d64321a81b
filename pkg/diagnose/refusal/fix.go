package refusal

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Lift removes the cause of a refusal that only the API server knows: after it, creates of pods are accepted.
func Lift(g *gang.Gang, r Refusal, who answer.Who, text, command string) stage.Fix {
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: who, Text: text, Command: command, Change: map[string]any{"refusal": string(r.Kind), "object": r.Object}},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			s = whatif.WithoutEvents(s, func(e *corev1.Event) bool { return e.Namespace == g.Meta.Namespace && e.Message == r.Raw })
			return whatif.WithoutProbes(s, "Pod")
		},
	}
}

// Free deletes what has the names that creates were refused for, with what it holds.
func Free(g *gang.Gang, takers []metav1.Object, action answer.Action) stage.Fix {
	return stage.Fix{Action: action, Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
		var pods []*corev1.Pod
		var owners []gang.Identity
		names := map[string]bool{}
		for _, taker := range takers {
			names[taker.GetName()] = true
			if pod, ok := taker.(*corev1.Pod); ok {
				pods = append(pods, pod)
			} else {
				owners = append(owners, gang.IdentityOf(taker))
			}
		}
		s = whatif.WithoutEvents(whatif.Gone(s, pods, owners...), func(e *corev1.Event) bool {
			r := Parse(e.Message)
			return e.Namespace == g.Meta.Namespace && r.Kind == Taken && names[r.Object]
		})
		return whatif.WithoutProbes(s, "Pod")
	}}
}

// Rename is a fix that writes another name into every pod template.
func Rename(g *gang.Gang, field, from, to string, edit func(*corev1.PodSpec), r Refusal) stage.Fix {
	fix := patch.Job(g, answer.Fix, fmt.Sprintf("write %s: %s instead of %s", field, to, from), map[string]any{field: to}, func(spec *whatif.Spec) {
		for i := range spec.Roles {
			edit(&spec.Roles[i].Template.Spec)
		}
	})
	apply := fix.Apply
	fix.Apply = func(s *snapshot.Snapshot) *snapshot.Snapshot {
		n := apply(s)
		if n == nil {
			return nil
		}
		n = whatif.WithoutProbes(n, "Pod")
		return whatif.WithoutEvents(n, func(e *corev1.Event) bool { return e.Message == r.Raw })
	}
	return fix
}
