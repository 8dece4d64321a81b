package diagnose

import (
	"context"
	"errors"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Asker answers several questions about one snapshot; what they have in common is computed once. It is not safe for
// concurrent use.
type Asker struct{ world *view.View }

// NewAsker returns an asker for a snapshot, which must not change any more.
func NewAsker(s *snapshot.Snapshot) *Asker { return &Asker{world: view.New(s)} }

// Ask answers for one job. Errors are of the kinds [view.NotFoundError] and [view.AmbiguousError].
func (a *Asker) Ask(ctx context.Context, q Question, o Options) (*answer.Answer, error) {
	subject, err := a.world.Find(q)
	var missing *view.NotFoundError
	if errors.As(err, &missing) && len(missing.Near) == 0 {
		if found := absent(a.world, q); found != nil {
			return found, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return explainSubject(ctx, a.world, subject, o), nil
}
