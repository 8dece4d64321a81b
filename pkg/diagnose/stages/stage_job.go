package stages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// job looks at the spec and at what the controller made of it.
func (c *climb) job() state {
	g := c.g
	for _, p := range c.w.Snap.Probes {
		if p.Kind == g.Kind.Kind && p.Namespace == g.Meta.Namespace && p.Name == g.Meta.Name && !p.Accepted() {
			c.held = true
			c.add(*found(answer.StageJob, answer.JobInvalid, answer.Blocked, answer.User, "the API server does not accept %s %s: %s", g.Kind.Kind, g.Meta.Name, p.Message).
				fact("code", p.Code).fact("message", p.Message))
			return ok
		}
	}
	switch {
	case len(g.Problems) > 0:
		c.held = true
		c.add(*c.jobInvalid())
	case g.End != nil && g.End.Failed:
		c.held = true
		c.add(*c.jobFailed())
	case g.Suspended && !c.heldByKueue():
		c.held = true
		c.add(*c.jobSuspended())
	case g.Total() == 0:
		c.held = true
		c.add(*found(answer.StageJob, answer.JobInvalid, answer.Blocked, answer.User, "%s asks for no members: every role has 0 replicas", g.Meta.Name).
			see(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".spec").fact("replicas", 0))
	}
	return ok
}

// heldByKueue reports whether Kueue suspends the job. Nobody should resume such a job by hand. Kueue may manage jobs that
// name no queue; its Workload tells.
func (c *climb) heldByKueue() bool {
	_, managed := kueue.QueueOf(&c.g.Meta)
	return managed || c.workload() != nil
}

// ref is how kubectl names the job.
func (c *climb) ref() string {
	if c.g.Reader.Resource == "" {
		return "pod/" + c.g.Meta.Name
	}
	return strings.ToLower(c.g.Kind.Kind) + "/" + c.g.Meta.Name
}

func (c *climb) kubectl(words ...string) string {
	return command.Kubectl(c.g.Meta.Namespace, words...)
}

func (c *climb) jobInvalid() *Finding {
	g := c.g
	problem := g.Problems[0]
	f := found(answer.StageJob, answer.JobInvalid, answer.Blocked, answer.User, "the spec of %s is not valid: %s", g.Meta.Name, problem).
		see(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".spec").
		fact("problems", g.Problems)
	for _, p := range g.Problems[1:] {
		f.detail("%s", p)
	}
	if g.End != nil {
		f.detail("the operator said %q %s ago", g.End.Message, phrase.Age(c.w.Age(g.End.At))).since(g.End.At)
	}
	return c.renameContainers(f)
}

// wantedContainer is the name that the operator looks for.
func wantedContainer(kind string) string {
	switch kind {
	case "TFJob":
		return "tensorflow"
	case "PyTorchJob":
		return "pytorch"
	}
	return ""
}

// renameContainers gives the main container of every role the name that the operator looks for.
func (c *climb) renameContainers(f *Finding) *Finding {
	want := wantedContainer(c.g.Kind.Kind)
	change, main := map[string]any{}, map[string]string{}
	for _, r := range c.g.Roles {
		if want != "" && r.Main != want && len(r.Template.Spec.Containers) > 0 {
			f.detail("rename container %q of %s to %q", r.Main, r.Name, want)
			change[r.Name+".container"], main[r.Name] = want, r.Main
		}
	}
	if len(change) == 0 {
		return f
	}
	var texts []string
	for _, name := range sortedKeys(main) {
		texts = append(texts, fmt.Sprintf("rename container %q of %s to %q", main[name], name, want))
	}
	return f.fix(c.edited(answer.Fix, joinAnd(texts)+" and submit again", change, func(spec *whatif.Spec) {
		for i, r := range spec.Roles {
			if _, wrong := main[r.Name]; wrong {
				spec.Roles[i].Template.Spec.Containers[0].Name = want
			}
		}
	}))
}

func (c *climb) jobFailed() *Finding {
	g := c.g
	f := found(answer.StageJob, answer.JobFailed, answer.Failed, answer.User, "%s has failed %s ago: %s", g.Meta.Name,
		phrase.Age(c.w.Age(g.End.At)), cmp.Or(g.End.Message, g.End.Reason, "no reason was given")).
		see(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".status.conditions").since(g.End.At)
	member, s := c.firstToFail()
	if member == nil {
		return f.run(c.kubectl("logs", "-l", c.podSelector(), "--all-containers", "--tail=20", "--prefix"))
	}
	t := s.State.Terminated
	return f.detail("%s ended first, %s ago: container %s, %s", member.Name(), phrase.Age(c.w.Age(t.FinishedAt.Time)), s.Name, ending(t)).
		fact("member", member.Name()).fact("exitCode", t.ExitCode).run(c.kubectl("logs", member.Pod.Name, "-c", s.Name, "--tail=50"))
}

// firstToFail is the member whose container ended badly first, and that container; nil if no pod tells.
func (c *climb) firstToFail() (*gang.Member, corev1.ContainerStatus) {
	var first *gang.Member
	var status corev1.ContainerStatus
	for i, m := range c.g.Members {
		if m.Pod == nil {
			continue
		}
		for _, s := range slices.Concat(m.Pod.Status.InitContainerStatuses, m.Pod.Status.ContainerStatuses) {
			t := s.State.Terminated
			if t != nil && t.ExitCode != 0 && (first == nil || t.FinishedAt.Before(&status.State.Terminated.FinishedAt)) {
				first, status = &c.g.Members[i], s
			}
		}
	}
	return first, status
}

// ending reads like: exit code 137 (OOMKilled).
func ending(t *corev1.ContainerStateTerminated) string {
	if t.Reason == "" || t.Reason == "Error" {
		return fmt.Sprintf("exit code %d", t.ExitCode)
	}
	return fmt.Sprintf("exit code %d (%s)", t.ExitCode, t.Reason)
}

// podSelector selects the job's pods with kubectl.
func (c *climb) podSelector() string { return PodSelector(c.g.Job) }

// PodSelector selects the pods of a job by label.
func PodSelector(s *gang.Job) string {
	if s.Kind.Group == "kubeflow.org" {
		return "training.kubeflow.org/job-name=" + s.Meta.Name
	}
	return "job-name=" + s.Meta.Name
}

func (c *climb) jobSuspended() *Finding {
	g := c.g
	path := suspendPath(g.Kind.Group)
	f := found(answer.StageJob, answer.JobSuspended, answer.Blocked, answer.User, "%s is suspended, and no queue manager does that: somebody has to resume it", g.Meta.Name).
		see(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, "."+strings.Join(path, "."))
	if at := c.suspendedAt(); !at.IsZero() {
		f.since(at).detail("suspended %s ago", phrase.Age(c.w.Age(at)))
	}
	patch := any(false)
	for i := len(path) - 1; i >= 0; i-- {
		patch = map[string]any{path[i]: patch}
	}
	return f.fix(Fix{
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

// suspendedAt is when the controller noticed; zero if it has not said.
func (c *climb) suspendedAt() time.Time {
	for _, j := range c.w.Snap.Jobs {
		if j.UID != c.g.Meta.UID {
			continue
		}
		for _, cond := range j.Status.Conditions {
			if cond.Type == batchv1.JobSuspended && cond.Status == corev1.ConditionTrue {
				return cond.LastTransitionTime.Time
			}
		}
	}
	if u := c.object(c.g.Kind.GroupKind(), c.g.Meta.Namespace, c.g.Meta.Name); u != nil {
		if word, status := condition(u, "Suspended"); status == "True" {
			return word.At
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
