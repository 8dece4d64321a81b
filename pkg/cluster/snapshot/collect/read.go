package collect

import (
	"context"
	"io"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
)

// Read is what --from means: it opens the snapshot in a file, - being in, and where from is empty it collects one from the
// cluster. The client that it collects with is returned; for a file none is made, and it is nil.
func Read(ctx context.Context, from string, in io.Reader, client func() (*kube.Client, error), o Options) (*snapshot.Snapshot, *kube.Client, error) {
	if from != "" {
		s, err := snapshot.Open(from, in)
		if err != nil {
			return nil, nil, failure.Errorf("%w", err).WithHint("a snapshot is what `gangctl why-pending --save FILE` or `kubectl get … -o yaml` writes")
		}
		return s, nil, nil
	}
	c, err := client()
	if err != nil {
		return nil, nil, err
	}
	s, err := Collect(ctx, c, o)
	return s, c, err
}
