package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// deletionTakes is how long controllers may take to let a job go, once its pods have gone.
const deletionTakes = time.Minute

// departure is a job that is being deleted, and what is still there of it.
type departure struct {
	*stage.Context
	// pods are all that it has, ending those in their grace period, and stuck those long past it.
	pods, ending, stuck []*corev1.Pod
	// finalizers are those of controllers, collected those that the garbage collector of Kubernetes takes away.
	finalizers, collected []string
}

// deleted finds that the job is being deleted: nothing is made for it any more, whatever it lacks.
func deleted(c *stage.Context) *stage.Finding {
	g := c.Gang
	d := departure{Context: c, pods: c.View.PodsOf(g.Job)}
	if g.Bare != nil { // what is left of a job that is gone
		d.pods = g.Bare
	}
	for _, p := range d.pods {
		switch {
		case c.View.Stuck(p):
			d.stuck = append(d.stuck, p)
		case p.DeletionTimestamp != nil:
			d.ending = append(d.ending, p)
		}
	}
	for _, name := range g.Meta.Finalizers {
		if command.OfKubernetes(name) {
			d.collected = append(d.collected, name)
		} else {
			d.finalizers = append(d.finalizers, name)
		}
	}
	f := stage.Found(answer.JobTerminating, "%s is being deleted, for %s", g.Meta.Name, phrase.Age(c.View.Age(g.Meta.DeletionTimestamp.Time))).
		SinceTime(g.Meta.DeletionTimestamp.Time).Fact("finalizers", slices.Clone(g.Meta.Finalizers)).Fact("pods", namesOf(d.pods))
	if g.Bare != nil {
		d.held(f)
		return f.Run(c.Kubectl(slices.Concat([]string{"get", "pod"}, namesOf(d.pods[:min(len(d.pods), command.MaxObjects)]), []string{"-o", "yaml"})...))
	}
	d.held(f.See(g.Kind.GroupVersion().String(), g.Kind.Kind, &g.Meta, ".metadata.deletionTimestamp"))
	return f.Detail("its controller makes nothing for it any more; submit it again when it is gone").Run(c.Kubectl("get", g.Ref(), "-o", "yaml"))
}

// held adds what the job waits for, and who has to release it.
func (d departure) held(f *stage.Finding) {
	switch late := d.View.Age(d.Gang.Meta.DeletionTimestamp.Time) > deletionTakes; {
	case len(d.stuck) > 0:
		d.heldByPods(f.As(answer.Blocked, answer.Admin))
	case len(d.ending) > 0:
		var last time.Time
		for _, p := range d.ending {
			last = view.Later(last, p.DeletionTimestamp.Time)
		}
		f.Message += ": it waits for " + phrase.Names(namesOf(d.ending)) + " to end"
		if left := last.Sub(d.View.Now); d.Kept(f, d.ending) == nil && left > 0 {
			f.Message += ", within " + phrase.Age(left)
		}
	case len(d.finalizers) > 0:
		f.Message += ": it waits for " + finalizers(d.finalizers)
		f.Detail("whoever has set a finalizer takes it away when that is done")
		if late {
			d.heldByFinalizer(f.As(answer.Blocked, answer.Admin), d.reported(f))
		}
	case len(d.collected) > 0:
		f.Message += ": the garbage collector of Kubernetes deletes what it owns first"
		if len(d.pods) > 0 {
			f.Message += ", " + phrase.Names(namesOf(d.pods))
		}
		if late {
			f.As(answer.Blocked, answer.Admin).Message += ", and has not"
			f.Detail("%s goes with the last of them: see whether kube-controller-manager runs, and whether one of them has a finalizer itself", finalizers(d.collected))
		}
	}
}

// heldByPods names the pods that should have gone, and offers to clear them.
func (d departure) heldByPods(f *stage.Finding) {
	names := namesOf(d.stuck)
	f.Message += fmt.Sprintf(": %s %s not gone, and should have", phrase.Names(names), phrase.Verb(len(names), "has", "have"))
	stage.DetailEach(f, d.stuck, func(p *corev1.Pod) string { return fmt.Sprintf("%s %s: %s", p.Name, d.Overdue(p), d.HeldBy(p)) })
	for _, p := range d.stuck[:min(len(d.stuck), stage.MaxLines)] {
		f.See("v1", "Pod", p, ".metadata.finalizers")
	}
	d.BringBackNodes(f.Fact("stuck", names), d.stuck)
	d.letGo(f, d.Clear(d.stuck))
}

// reported adds why the controller that is to release the job does not, as far as that shows: by its warnings, or by a Job that it made for that and that has failed. It reports whether
// it shows.
func (d departure) reported(f *stage.Finding) (seen bool) {
	g := d.Gang
	for _, e := range d.View.MakerEvents(g.Job) {
		if e.Warning && !e.Last.Before(g.Meta.DeletionTimestamp.Time) && g.Reader.Wrote(e.By) {
			f.Detail("its controller reports that it cannot go on (%s, %s, last %s ago): %s", e.Reason, phrase.Count(max(e.Count, 1), "time"), phrase.Age(d.View.Age(e.Last)), phrase.Shorten(strings.Join(strings.Fields(e.Message), " "), maxReported))
			seen = true
			break
		}
	}
	for _, j := range failedParts(d.View)[gang.IdentityOf(&g.Meta)] {
		end := batchjob.Convert(j).End
		if j.CreationTimestamp.Before(g.Meta.DeletionTimestamp) {
			continue
		}
		f.Detail("Job %s, which its controller made for that, has failed %s ago: %s", j.Name, phrase.Age(d.View.Age(end.At)), cmp.Or(end.Message, end.Reason)).
			Run(d.Kubectl("logs", "job/"+j.Name, "--all-containers", "--tail=50"))
		seen = true
		break
	}
	return seen
}

// failedParts are the Jobs of Kubernetes that have failed, by what controls them.
func failedParts(v *view.View) map[gang.Identity][]*batchv1.Job {
	type failedJobs struct{}
	return view.Once(v, failedJobs{}, func() map[gang.Identity][]*batchv1.Job {
		of := map[gang.Identity][]*batchv1.Job{}
		for _, j := range v.Snap.Jobs {
			job := batchjob.Convert(j)
			if id, ok := gang.ControllerOf(j); ok && job.End != nil && job.End.Failed {
				of[id] = append(of[id], j)
			}
		}
		return of
	})
}

// heldByFinalizer offers to take away what no controller does; explained reports whether it shows why.
func (d departure) heldByFinalizer(f *stage.Finding, explained bool) {
	kept := slices.Clone(d.collected)
	if kept == nil {
		kept = []string{}
	}
	g, when := d.Gang, ", if its controller is gone for good"
	if explained {
		when = ", if that cannot be mended"
	}
	d.letGo(f, answer.Action{Text: "take " + finalizers(d.finalizers) + " off " + g.Meta.Name + when, Cost: "what the finalizer was to finish is given up",
		Change: map[string]any{"finalizers": kept}, Command: command.MergePatch(g.Meta.Namespace, strings.ToLower(g.Kind.GroupKind().String()), g.Meta.Name, map[string]any{"metadata": map[string]any{"finalizers": kept}})})
}

// finalizers reads like: finalizer example.com/audit.
func finalizers(names []string) string {
	return phrase.Verb(len(names), "finalizer", "finalizers") + " " + phrase.And(names)
}

// letGo offers an action after which the job goes, with what it has.
func (d departure) letGo(f *stage.Finding, action answer.Action) {
	action.Kind, action.By = answer.Fix, answer.Admin
	f.Fix(stage.Fix{Action: action, Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
		return whatif.Gone(s, d.pods, gang.IdentityOf(&d.Gang.Meta))
	}})
}

// namesOf are the names of pods, sorted.
func namesOf(pods []*corev1.Pod) []string {
	names := make([]string, 0, len(pods))
	for _, p := range pods {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}
