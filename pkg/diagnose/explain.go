// Package diagnose answers "why is my gang pending?" from a snapshot of the cluster. It is pure: a snapshot in, an answer
// out; the same snapshot always gives the same answer.
package diagnose

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// NodeDetail is how much an answer has of nodes.
type NodeDetail int

const (
	// EveryNode: for each role a row a node, with why it rejects members, and their sums.
	EveryNode NodeDetail = iota
	// NodeSums: how many nodes reject members for which reason, and how much room nodes have.
	NodeSums
	// NoNodes: nothing.
	NoNodes
)

// Options bound the work.
type Options struct {
	// Budget is the time for one search for a placement, for that of the causes why there is none, and for the count of devices; 0 is the default of each.
	Budget time.Duration
	// AdviceBudget is the time for the search of what would help, by Clock; 0 is one second. Advice that is not found in time
	// is not offered, and the answer reports that.
	AdviceBudget time.Duration
	// Clock is time.Now if it is nil.
	Clock func() time.Time
	// NoAdvice leaves the search for what would help out.
	NoAdvice bool
	// Nodes is how much the answer has of them: most of it, in a large cluster.
	Nodes NodeDetail
	// Reader is whom the answer is for. The zero value is the caller, who has read the snapshot.
	Reader audience.Reader
}

// defaultAdviceBudget is the time in which a person at a prompt has not begun to wait. It is enough for all that is looked for in
// clusters of a few thousand nodes.
const defaultAdviceBudget = time.Second

// Explainer answers several queries about one snapshot; what they have in common is computed once. It is not safe for
// concurrent use.
type Explainer struct{ view *view.View }

// NewExplainer returns an explainer of a snapshot, which must not change any more.
func NewExplainer(s *snapshot.Snapshot) *Explainer { return ExplainerOf(view.New(s)) }

// ExplainerAfter is NewExplainer for a later snapshot of a cluster, which has the same objects where they have not changed: see [Explainer.Known].
func ExplainerAfter(earlier view.Known, s *snapshot.Snapshot) *Explainer {
	return ExplainerOf(view.After(earlier, s))
}

// Known is what is known of the snapshot, for the explainer of a later one.
func (e *Explainer) Known() view.Known { return e.view.Known() }

// ExplainerOf returns an explainer of a view: what else looks at it computes nothing a second time.
func ExplainerOf(w *view.View) *Explainer { return &Explainer{view: w} }

// Assume returns an explainer of a snapshot that was made from this one's by a change of what is in it: what was observed of the cluster before, such as
// that a scheduler looks at pods, counts there, too.
func (e *Explainer) Assume(changed *snapshot.Snapshot) *Explainer {
	return &Explainer{view: e.view.Assume(changed)}
}

// Prepare builds what every answer looks at, so that the first costs no more than the others.
func (e *Explainer) Prepare() {
	e.view.Cluster()
	e.view.Consumers()
	e.view.Best(nil)
}

// Explain answers for one job. Errors are of the kinds [gang.JobNotFoundError] and [gang.AmbiguousJobError].
func (e *Explainer) Explain(ctx context.Context, q Query, o Options) (*answer.Answer, error) {
	job, err := e.view.Find(q)
	var missing *gang.JobNotFoundError
	if errors.As(err, &missing) && suggest.Nearest(missing.Name, missing.Nearest) == "" && len(missing.Instead) == 0 { // a slip explains more than a missing right
		if found := absent(e.view, q); found != nil {
			return found, nil
		}
	}
	if err != nil {
		return nil, err
	}
	_, a := explainJob(ctx, e.view, job, o)
	return a, nil
}

// Explain answers for one job. Errors are of the kinds [gang.JobNotFoundError] and [gang.AmbiguousJobError].
func Explain(ctx context.Context, s *snapshot.Snapshot, q Query, o Options) (*answer.Answer, error) {
	return NewExplainer(s).Explain(ctx, q, o)
}

// Pending answers for every gang of a namespace, or of all if it is empty, that does not run, or runs without some of its members, and has not ended, without
// advice. They are sorted by name.
func (e *Explainer) Pending(ctx context.Context, namespace string, o Options) []*answer.Answer {
	w := e.view
	var all []*answer.Answer
	jobs := slices.DeleteFunc(slices.Clone(w.Jobs()), func(job *gang.Job) bool {
		return namespace != "" && job.Meta.Namespace != namespace || job.End != nil
	})
	jobs = append(jobs, w.BareGangs(namespace)...)
	slices.SortStableFunc(jobs, func(a, b *gang.Job) int {
		return cmp.Or(cmp.Compare(a.Meta.Namespace, b.Meta.Namespace), cmp.Compare(a.Meta.Name, b.Meta.Name))
	})
	for _, job := range jobs {
		r := stages.Evaluate(ctx, w, job, o.stages())
		if r.Verdict != answer.Running && r.Verdict != answer.Done || r.Behind != nil {
			all = append(all, compose(w, r, advice.Found{}, o)) //nolint:contextcheck // as in explainJob
		}
	}
	return all
}

func explainJob(ctx context.Context, w *view.View, job *gang.Job, o Options) (*stage.Diagnosis, *answer.Answer) {
	r := stages.Evaluate(ctx, w, job, o.stages())
	a := compose(w, r, advise(ctx, w, r, o), o) //nolint:contextcheck // plugins that work on values take a context and have no use for one
	if job.Whole() && r.Gang.Replica != nil {
		a.Notes = append(a.Notes, siblings(ctx, w, job, r, o)...)
	}
	return r, a
}

// stages are the options of the stages.
func (o Options) stages() stages.Options { return stages.Options{Budget: o.Budget, Reader: o.Reader} }

// advise searches for what would help, unless that is turned off.
func advise(ctx context.Context, w *view.View, r *stage.Diagnosis, o Options) advice.Found {
	if o.NoAdvice {
		return advice.Found{}
	}
	return advice.Search(ctx, w, r, advice.Options{Options: o.stages(), Time: cmp.Or(o.AdviceBudget, defaultAdviceBudget), Clock: o.Clock})
}

// Query names what is to be explained.
type Query = view.Query

// KindNames are the names of kinds that a query may have.
func KindNames() []string {
	names := []string{"job", "pod"}
	for _, r := range kind.Readers() {
		names = append(names, r.Names[0])
	}
	return names
}

// KnownKind reports whether a name is that of a kind, in any of its forms.
func KnownKind(name string) bool {
	if slices.Contains([]string{"job", "jobs", "pod", "pods", "po"}, name) {
		return true
	}
	_, ok := kind.ByName(name)
	return ok
}
