package pods

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// taker is an object that has the name of one that the gang is to have: a pod, or a Job that would make pods.
type taker struct {
	metav1.Object
	owner *metav1.OwnerReference
	// left are its pods that are stuck in their deletion, which it goes after: itself, or those of a Job.
	left []*corev1.Pod
	// emptied reports that it is being deleted and waits for no pod.
	emptied bool
}

func takerOf(c *stage.Context, obj metav1.Object) taker {
	t := taker{Object: obj, owner: metav1.GetControllerOf(obj)}
	var pods []*corev1.Pod
	switch o := obj.(type) {
	case *corev1.Pod:
		pods = []*corev1.Pod{o}
	case *batchv1.Job:
		pods = c.View.PodsOfJob(o)
		t.emptied = o.DeletionTimestamp != nil && len(pods) == 0
	}
	t.left = slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return !c.View.Stuck(p) })
	return t
}

// goes reports whether it goes for good when it is deleted: nothing makes it again under its name, and it was not deleted before.
func (t taker) goes() bool {
	return t.emptied || t.GetDeletionTimestamp() == nil && (t.owner == nil || t.owner.Kind == "ReplicaSet" || batchjob.Controls(t.owner))
}

// nameTaken finds that pods or Jobs that are none of the gang's have the names of members, or of the Jobs that would make members. It is nil where something
// else is in the way.
func nameTaken(c *stage.Context, r refusal.Refusal) *stage.Finding {
	if refusal.TakenBy(c.View, c.Gang, r) == nil {
		return nil
	}
	version, kind, resource := "v1", "Pod", "pod"
	if r.Resource() == "jobs.batch" {
		version, kind, resource = "batch/v1", "Job", "job"
	}
	objects := refusal.Takers(c.View, c.Gang, r)
	var all []taker
	var names []string
	for _, obj := range objects {
		all, names = append(all, takerOf(c, obj)), append(names, obj.GetName())
	}
	title, message := kind+" "+phrase.Names(names), "has the name of one that this job is to make, and is none of it"
	if len(all) > 1 {
		title, message = kind+"s "+phrase.Names(names), "have the names of those that this job is to make, and are none of it"
	}
	few := names[:min(len(names), command.MaxObjects)]
	f := stage.Found(answer.AdmissionDenied, "%s %s", title, message).Fact("message", r.Message).Fact("names", names).
		Run(c.Kubectl(slices.Concat([]string{"get", resource}, few, []string{"-o", "yaml"})...))
	for _, t := range all[:min(len(all), stage.MaxLines)] {
		its := "it"
		if len(all) > 1 {
			its = t.GetName()
		}
		if t.describe(c, f, its); !t.emptied {
			f.See(version, kind, t, ".metadata.ownerReferences")
		}
	}
	action := freed(c, f, all, title, resource)
	action.Kind, action.By = answer.Fix, answer.User
	action.Change = map[string]any{"refusal": string(r.Kind), "object": r.Object, "names": few}
	return f.Fix(refusal.Free(c.Gang, objects, action))
}

// describe adds what makes an object, and why it does not go, if it is to.
func (t taker) describe(c *stage.Context, f *stage.Finding, its string) {
	at := t.GetDeletionTimestamp()
	if t.emptied {
		f.Detail("%s is being deleted, for %s: it waits for finalizer %s", its, phrase.Age(c.View.Age(at.Time)), phrase.Names(t.GetFinalizers()))
		return
	}
	if t.owner != nil {
		f.Detail("%s is made by %s %s", its, t.owner.Kind, t.owner.Name)
	}
	itself := false
	stage.DetailEach(f, t.left, func(p *corev1.Pod) string {
		if metav1.Object(p) == t.Object {
			itself = true
			return fmt.Sprintf("%s %s: %s", its, c.Overdue(p), c.HeldBy(p))
		}
		return fmt.Sprintf("%s is stuck in Terminating: %s", p.Name, c.HeldBy(p))
	})
	if at != nil && !itself {
		f.Detail("%s is being deleted, for %s", its, phrase.Age(c.View.Age(at.Time)))
	}
}

// freed is how the names are freed, or done without.
func freed(c *stage.Context, f *stage.Finding, all []taker, title, resource string) (a answer.Action) {
	var pods []*corev1.Pod
	var names, commands, ending []string
	for _, t := range all {
		names, pods = append(names, t.GetName()), append(pods, t.left...)
		if !t.emptied {
			continue
		}
		if clear := command.ClearFinalizers(resource, t); clear != "" {
			commands = append(commands, clear)
		} else {
			ending = append(ending, t.GetName())
		}
	}
	if slices.ContainsFunc(all, func(t taker) bool { return !t.emptied && len(t.left) == 0 }) {
		a.Text = "delete " + title + ", or submit under another name"
		if len(names) <= command.MaxObjects && !slices.ContainsFunc(all, func(t taker) bool { return !t.goes() }) {
			a.Command = c.Kubectl(append([]string{"delete", resource}, names...)...)
		}
		return a
	}
	if len(ending) > 0 { // the garbage collector of Kubernetes deletes what they own first, or has what it waits for
		a.Text = "submit under another name, or have kube-controller-manager end the deletion of " + phrase.Names(ending)
		return a
	}
	clear := c.Clear(pods)
	if clear.Change["nodes"] != nil || len(pods) > 0 && clear.Command == "" { // they may still run there, or a controller of Kubernetes has to end them
		c.BringBackNodes(f, pods)
		a.Text = "submit under another name, or have an administrator " + clear.Text
		return a
	}
	a.Text, a.Cost = "clear "+title+", or submit under another name", stage.GivenUp
	if len(commands)+len(pods) <= command.MaxObjects {
		a.Command = command.Then(append(commands, clear.Command)...)
	}
	return a
}

// namesLeave finds that pods of an earlier job of the name are being deleted whose names members are to have: these are made after them.
func namesLeave(c *stage.Context, out *stage.Result) {
	leaving := refusal.Leaving(c.View, c.Gang)
	if len(leaving) == 0 {
		return
	}
	var names []string
	var last time.Time
	for _, p := range leaving {
		names, last = append(names, p.Name), view.Later(last, p.DeletionTimestamp.Time)
	}
	f := stage.Found(answer.BelowQuorum, "%s of an earlier job %s being deleted, and those of this one are made after that", phrase.Names(names), phrase.Verb(len(names), "is", "are")).
		At(answer.StagePods).Fact("exist", c.Gang.Created()).Fact("needed", c.Gang.Min).Fact("pods", names)
	if kept := c.Kept(f, leaving); kept != nil {
		f.Message += fmt.Sprintf(": %s %s, %s", kept.Name, c.Overdue(kept), c.HeldBy(kept))
	} else {
		f.Message += ": at most " + phrase.Age(max(0, last.Sub(c.View.Now))) + " left"
	}
	out.Add(f)
}
