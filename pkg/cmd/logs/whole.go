package logs

import (
	"context"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
)

// maxStreams is how many connections are opened at a time unless somebody says otherwise.
const maxStreams = 50

// Follow prints what all members of a job print until it ends, as `gangctl logs -f` does.
func Follow(ctx context.Context, io *iostreams.IOStreams, client *kube.Client, job *gang.Job) error {
	o := &Options{IO: io, Name: job.Meta.Name, Follow: true, Tail: -1, MaxStreams: maxStreams}
	if err := o.validate(); err != nil {
		return err
	}
	return o.follow(ctx, client, job, "", int(job.Total()))
}
