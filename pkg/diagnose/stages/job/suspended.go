package job

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
)

func suspended(c *stage.Context) *stage.Finding {
	g := c.Gang
	path := suspendPath(g.Kind.Group)
	f := stage.Found(answer.JobSuspended, "%s is suspended, and no queue manager does that: a user has to resume it", g.Meta.Name).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, "."+strings.Join(path, "."))
	if at := suspendedAt(c); !at.IsZero() {
		f.SinceTime(at).Detail("suspended %s ago", phrase.Age(c.View.Age(at)))
	}
	patch := any(false)
	for i := len(path) - 1; i >= 0; i-- {
		patch = map[string]any{path[i]: patch}
	}
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "resume it", Change: map[string]any{"suspend": false},
			Command: command.MergePatch(g.Meta.Namespace, strings.ToLower(g.Kind.Kind), g.Meta.Name, patch)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			c := whatif.Edit(s, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) {
				whatif.Set(u, false, path...)
			})
			for i, j := range c.Jobs {
				if j.UID == g.Meta.UID {
					j = j.DeepCopy()
					j.Spec.Suspend = new(bool)
					c.Jobs[i] = j
				}
			}
			return c
		},
	})
}

// suspendedAt is when the controller noticed; zero if it has not reported that.
func suspendedAt(c *stage.Context) time.Time {
	for _, j := range c.View.Snap.Jobs {
		if j.UID != c.Gang.Meta.UID {
			continue
		}
		for _, cond := range j.Status.Conditions {
			if cond.Type == batchv1.JobSuspended && cond.Status == corev1.ConditionTrue {
				return cond.LastTransitionTime.Time
			}
		}
	}
	if u := c.View.Object(c.Gang.Kind.GroupKind(), c.Gang.Meta.Namespace, c.Gang.Meta.Name); u != nil {
		if condition, status := stage.Condition(u, "Suspended"); status == "True" {
			return condition.At
		}
	}
	return time.Time{}
}

func suspendPath(group string) []string {
	if group == "kubeflow.org" {
		return []string{"spec", "runPolicy", "suspend"}
	}
	return []string{"spec", "suspend"}
}
