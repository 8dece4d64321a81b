package cmdutil

import (
	"context"
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/prompt"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// Caller is the user of a command that ends members of jobs, or starts them.
type Caller struct {
	Client   *kube.Client
	Prompter prompt.Prompter
	// Verb is the command: delete.
	Verb string
	// Yes is --yes: jobs of others need no confirmation.
	Yes bool

	// name is the user's name at the API server, once it was read.
	name *string
}

// May confirms what is to be done to a job that another user submitted. A job without a record of who did needs no confirmation.
func (c *Caller) May(ctx context.Context, job *gang.Job) error {
	user := provenance.User(job.Object)
	if user == "" || c.Yes {
		return nil
	}
	if c.name == nil {
		c.name = new(c.Client.User(ctx))
	}
	if *c.name == user {
		return nil
	}
	if !c.Prompter.Available() {
		return failure.Errorf("%s was submitted by %s; cannot prompt: stdin and stderr must be terminals", job, user).
			WithHint("to %[1]s it all the same: gangctl %[1]s %[2]s -n %[3]s --yes", c.Verb, job.Reader.Argument(job.Meta.Name), job.Meta.Namespace)
	}
	yes, err := c.Prompter.Confirm(fmt.Sprintf("%s was submitted by %s. %s%s it?", job, user, strings.ToUpper(c.Verb[:1]), c.Verb[1:]))
	if err != nil {
		return err
	}
	if !yes {
		return failure.Errorf("%s was submitted by %s, and stays as it is", job, user)
	}
	return nil
}
