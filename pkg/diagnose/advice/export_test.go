package advice

import (
	"context"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Counted is Search, with how many changed clusters it evaluates.
func Counted(ctx context.Context, w *view.View, base *stage.Diagnosis, opts Options) (found Found, evaluated int) {
	s := newSearch(ctx, w, base, opts)
	diagnose := s.diagnose
	s.diagnose = func(w *view.View, job *gang.Job) *stage.Diagnosis {
		evaluated++
		return diagnose(w, job)
	}
	return s.whole(), evaluated
}
