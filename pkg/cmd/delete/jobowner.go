package delete

import (
	"context"
	"fmt"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// caller is the user who deletes.
type caller struct {
	o      *Options
	client *kube.Client
	// name is the user's name at the API server, once it was read.
	name *string
}

// may confirms the deletion of a job that another user submitted. A job without a record of who did needs no confirmation.
func (c *caller) may(ctx context.Context, job *gang.Job) error {
	user := provenance.User(job.Object)
	if user == "" || c.o.Yes {
		return nil
	}
	if c.name == nil {
		c.name = new(c.client.User(ctx))
	}
	if *c.name == user {
		return nil
	}
	if !c.o.Prompter.Available() {
		return failure.Errorf("%s was submitted by %s; cannot prompt: stdin and stderr must be terminals", job, user).
			WithHint("to delete it all the same: gangctl delete %s -n %s --yes", job.Meta.Name, job.Meta.Namespace)
	}
	yes, err := c.o.Prompter.Confirm(fmt.Sprintf("%s was submitted by %s. Delete it?", job, user))
	if err != nil {
		return err
	}
	if !yes {
		return failure.Errorf("%s was submitted by %s, and stays", job, user)
	}
	return nil
}
