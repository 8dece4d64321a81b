package whypending

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// CompleteWays completes with the numbers of the ways that gangctl can do itself, of those that the gang scheduler has published for the job on the command line. A prompt does
// not wait until a whole cluster is read.
func CompleteWays(f *cmdutil.Factory) cobra.CompletionFunc {
	return cmdutil.CompleteFromCluster(f, func(ctx context.Context, client *kube.Client, namespace string, args []string) (found []cobra.Completion, err error) {
		o := &Options{IO: f.IO, Source: sourceAuto}
		if err := o.parse(args); err != nil || o.Name == "" {
			return nil, err
		}
		a, err := o.published(ctx, client, namespace)
		if err != nil {
			return nil, err
		}
		for _, x := range a.Unblock {
			if resize.ArgsIn(x.Resize) != nil {
				found = append(found, cobra.CompletionWithDesc(strconv.Itoa(x.Number), x.Text))
			}
		}
		return found, nil
	})
}
