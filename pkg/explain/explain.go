// Package explain answers "why is my gang pending?" from a snapshot of the cluster. It is pure: a snapshot in, an answer
// out; the same snapshot always gives the same answer.
package explain

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/explain/advice"
	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/ladder"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/snapshot"
	"github.com/gangctl/gangctl/pkg/workload"
	"github.com/gangctl/gangctl/pkg/workload/registry"
)

// Question names what is asked about.
type Question = world.Question

// Options bound the work.
type Options struct {
	// Budget is the time for one search for a placement; 0 is the default.
	Budget time.Duration
	// AdviceBudget is the time for the search of what would help; 0 is ten times Budget's default. Advice that is not found in
	// time is not offered.
	AdviceBudget time.Duration
	// NoAdvice leaves the search for what would help out.
	NoAdvice bool
}

// defaultAdviceBudget is the time in which a person at a prompt is still there.
const defaultAdviceBudget = 5 * time.Second

// Explain answers for one job. Errors are of the kinds [world.NotFoundError] and [world.AmbiguousError].
func Explain(ctx context.Context, s *snapshot.Snapshot, q Question, o Options) (*answer.Answer, error) {
	return NewAsker(s).Ask(ctx, q, o)
}

// Pending answers for every gang of a namespace, or of all if it is empty, that does not run and has not ended, without
// advice. They are sorted by name.
func Pending(ctx context.Context, s *snapshot.Snapshot, namespace string, o Options) []*answer.Answer {
	w := world.New(s)
	o.NoAdvice = true
	var all []*answer.Answer
	for _, subject := range w.Jobs() {
		if namespace != "" && subject.Meta.Namespace != namespace || subject.End != nil {
			continue
		}
		if a := explainSubject(ctx, w, subject, o); a.Verdict != answer.Running && a.Verdict != answer.Done {
			all = append(all, a)
		}
	}
	return all
}

func explainSubject(ctx context.Context, w *world.World, subject *world.Subject, o Options) *answer.Answer {
	opts := ladder.Options{Budget: o.Budget}
	r := ladder.Climb(ctx, w, subject, opts)
	var actions []answer.Action
	if !o.NoAdvice {
		budget := o.AdviceBudget
		if budget == 0 {
			budget = defaultAdviceBudget
		}
		within, cancel := context.WithTimeout(ctx, budget)
		actions = advice.Search(within, w, r, opts)
		cancel()
	}
	return compose(w, r, actions)
}

// absent explains why a job cannot even be looked for: its kind is not served, or may not be listed.
func absent(w *world.World, q Question) *answer.Answer {
	kinds := registry.Readers()
	if reader, ok := registry.ByWord(q.Kind); ok {
		kinds = []workload.Reader{reader}
	}
	var unserved, denied []string
	for _, reader := range kinds {
		if reader.Kind == "Job" {
			continue
		}
		resource := schema.GroupResource{Group: reader.Group, Resource: reader.Resource}
		switch {
		case !w.Snap.CanList(resource.String(), q.Namespace):
			denied = append(denied, resource.String())
		case w.Snap.Server.Resources != nil && !w.Snap.Serves(resource, reader.Kind):
			unserved = append(unserved, resource.String())
		}
	}
	looked := slices.ContainsFunc(kinds, func(r workload.Reader) bool { return r.Kind != "Job" })
	switch {
	case len(denied) > 0:
		return refusal(w, q, answer.NoPermission, answer.Uncertain, answer.Admin, "you may not list "+strings.Join(denied, ", ")+" in namespace "+q.Namespace,
			"kubectl auth can-i list "+denied[0]+" -n "+q.Namespace)
	case looked && len(unserved) > 0 && len(unserved) == countCustom(kinds):
		return refusal(w, q, answer.CRDNotInstalled, answer.Blocked, answer.Admin, "this cluster does not know "+strings.Join(unserved, ", ")+": the operator is not installed",
			"kubectl api-resources --api-group=kubeflow.org")
	}
	return nil
}

func countCustom(kinds []workload.Reader) int {
	n := 0
	for _, r := range kinds {
		if r.Kind != "Job" {
			n++
		}
	}
	return n
}

func refusal(w *world.World, q Question, code answer.Code, verdict answer.Verdict, who answer.Who, message, command string) *answer.Answer {
	f := answer.Finding{Code: code, Stage: answer.StageRequest, Verdict: verdict, Who: who, Message: message, Commands: []string{command}}
	a := &answer.Answer{
		APIVersion: answer.APIVersion, Job: answer.Job{Kind: q.Kind, Namespace: q.Namespace, Name: q.Name}, Verdict: verdict, Who: who,
		Exit: answer.ExitCode(verdict, who, false), Headline: q.Name + ": " + message, Primary: &f, AlsoBlocking: []answer.Finding{},
		Stages: []answer.StageState{}, Unblock: []answer.Action{}, Gang: answer.Gang{Roles: []answer.Role{}},
		Confidence: answer.Confidence{Level: answer.Proven, Unmodelled: []string{}, MissingPermissions: []string{}},
	}
	stamp(a, w)
	return a
}
