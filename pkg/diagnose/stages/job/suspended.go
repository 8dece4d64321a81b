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
	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

func suspended(c *stage.Context) *stage.Finding {
	g := c.Gang
	if _, begun := g.Meta.Annotations[resize.Annotation]; begun {
		return interrupted(c)
	}
	if g.Kind.GroupKind() == volcanojob.GroupKind() {
		return aborted(c)
	}
	path := suspension.FieldOf(g.Kind.Group)
	f := stage.Found(answer.JobSuspended, "%s is suspended, and no queue manager does that: a user has to resume it", g.Meta.Name).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, "."+strings.Join(path, "."))
	if at := suspendedAt(c); !at.IsZero() {
		f.SinceTime(at).Detail("suspended %s ago", phrase.Age(c.View.Age(at)))
	}
	unqueued(c, f)
	patch := any(false)
	for i := len(path) - 1; i >= 0; i-- {
		patch = map[string]any{path[i]: patch}
	}
	return f.Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "resume it", Change: map[string]any{"suspend": false},
			Command: command.MergePatch(g.Meta.Namespace, strings.ToLower(g.Kind.Kind), g.Meta.Name, patch)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Resumed(s, g.Job) },
	})
}

// resumes is how long a controller may take to resume what it has made of a job that is not suspended.
const resumes = 5 * time.Minute

// madeSuspended finds that the object that the controller has made of a job is suspended, and the job is not: no pods are made before it is resumed. Kueue, for one, suspends a
// RayCluster of its own account.
func madeSuspended(c *stage.Context, out *stage.Result) bool {
	g := c.Gang
	reader, known := kinds.ByKind(g.Reader.Makes)
	if !known || g.Made != nil || g.Suspended || g.MadeAs == "" || g.End != nil || len(g.ExistingPods()) > 0 { // an object that lasts while its job is suspended is resumed with it
		return false
	}
	made := c.View.Object(reader.GroupKind, g.Meta.Namespace, g.MadeAs)
	if made == nil || c.View.Age(made.GetCreationTimestamp().Time) <= resumes {
		return false
	}
	if job, err := reader.Job(made); err != nil || !job.Suspended {
		return false
	}
	path := suspension.FieldOf(reader.Group)
	patch := any(false)
	for i := len(path) - 1; i >= 0; i-- {
		patch = map[string]any{path[i]: patch}
	}
	out.Add(stage.Found(answer.JobSuspended, "%s %s, which was made of %s, is suspended, and %s is not: no pods are made before it is resumed", reader.Kind, g.MadeAs, g.Meta.Name, g.Meta.Name).
		See(made.GetAPIVersion(), made.GetKind(), made, "."+strings.Join(path, ".")).Fact("made", g.MadeAs).Run(c.Kubectl("describe", reader.Resource+"."+reader.Group, g.MadeAs)).Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "resume " + reader.Kind + " " + g.MadeAs, Change: map[string]any{"suspend": false},
			Command: command.MergePatch(g.Meta.Namespace, reader.Resource+"."+reader.Group, g.MadeAs, patch)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, reader.GroupKind, g.Meta.Namespace, g.MadeAs, func(u *unstructured.Unstructured) { whatif.Set(u, false, path...) })
		},
	}))
	return true
}

// aborted is a Job of Volcano whose pods are gone until a user resumes it.
func aborted(c *stage.Context) *stage.Finding {
	g := c.Gang
	return stage.Found(answer.JobSuspended, "%s is aborted: its pods are deleted, and others are made when a user resumes it", g.Meta.Name).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".status.state.phase").Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "resume it", Change: map[string]any{"suspend": false}, Command: volcanojob.Command("resume", &g.Meta)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) {
				whatif.Set(u, "Pending", "status", "state", "phase")
			})
		},
	})
}

// interrupted is a job that a resize has suspended and not changed: resumed as it is, it might wait for more members than it has.
func interrupted(c *stage.Context) *stage.Finding {
	g := c.Gang
	f := stage.Found(answer.JobSuspended, "a resize of %s was interrupted: it stays suspended until that is completed or taken back", g.Meta.Name).
		See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".metadata.annotations."+resize.Annotation)
	if at := suspendedAt(c); !at.IsZero() {
		f.SinceTime(at).Detail("suspended %s ago", phrase.Age(c.View.Age(at)))
	}
	begun, err := resize.Begun(&g.Meta)
	if err != nil {
		return f.Detail("what it keeps of that cannot be read: resize has the reason")
	}
	fix := func(does, text, how string, edit func(*whatif.Spec), flags ...string) stage.Fix {
		return stage.Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: text, Change: map[string]any{"resize": does}, How: how,
				Resize: resize.Line(g.Job, append([]string{g.Meta.Name}, flags...))},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Resumed(whatif.Resubmit(s, g, edit), g.Job)
			},
		}
	}
	back := func(spec *whatif.Spec) {
		if was := begun.Was; was != nil {
			spec.Min, spec.Queue, spec.PriorityClass = was.Min, was.Queue, was.PriorityClass
		}
	}
	return f.Fix(fix("complete", "complete the resize", "it shows the change that has begun, and has you confirm it", begun.Edit(g))).
		Fix(fix("abort", "take the resize back", "the group becomes what it was, and the job goes on as it is", back, "--abort"))
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
		if condition, status := gang.ConditionIn(u, "Suspended"); status == "True" {
			return condition.At
		}
	}
	return time.Time{}
}
