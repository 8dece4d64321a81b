package submit

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// stamp has the server fill in the defaults of a job, in a dry run, and puts the hash of that spec on the job: so it can be told later
// whether somebody changed it. An admission webhook that refuses dry runs, and says so with a bad request, leaves the job without; one
// that refuses the job does so again when it is created.
func (c *creator) stamp(ctx context.Context, job *unstructured.Unstructured) error {
	if c.dryRun {
		return nil
	}
	if stored := c.tried[job]; stored != nil {
		provenance.Stamp(job, stored)
		return nil
	}
	stored, err := c.post(ctx, job, true)
	switch {
	case apierrors.IsBadRequest(err):
		return nil
	case err != nil:
		return err
	}
	provenance.Stamp(job, stored)
	return nil
}

// sign keeps on a job who submits it, for those who want to delete it.
func (c *creator) sign(ctx context.Context, job *unstructured.Unstructured) {
	if c.dryRun {
		return
	}
	if c.user == nil {
		c.user = new(c.client.User(ctx))
	}
	provenance.SetUser(job, *c.user)
}
