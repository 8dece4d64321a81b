package install

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	checkcmd "github.com/gangctl/gangctl/pkg/cmd/check"
	"github.com/gangctl/gangctl/pkg/setup/check"
	"github.com/gangctl/gangctl/pkg/setup/check/facts"
)

// precheck looks at what has to be true before these objects are written, and refuses if something is not: half an installation
// is worse than none. What it may not look at is no reason to refuse.
func (o *SchedulerOptions) precheck(ctx context.Context, client *kube.Client, objects []*unstructured.Unstructured) error {
	collected, err := facts.Collect(ctx, client, facts.Options{Namespace: o.Namespace, Version: o.Version, Shipped: objects, Before: true, Now: o.IO.Clock.Now})
	if err != nil {
		return fmt.Errorf("check the cluster: %w", err)
	}
	all := check.NewReport(check.Before(), collected)
	if all.Summary.Fail == 0 {
		return nil
	}
	failed := &check.Report{Summary: all.Summary}
	for _, outcome := range all.Checks {
		if outcome.Status == check.Fail {
			failed.Checks = append(failed.Checks, outcome)
		}
	}
	fmt.Fprint(o.IO.ErrOut, checkcmd.Text(failed, o.IO.ErrStyled))
	return failure.Errorf("the gang scheduler is not installed: %d of %d checks failed", all.Summary.Fail, len(all.Checks)).
		WithHint("see all of them: gangctl check --pre; install it all the same: --skip-checks")
}
