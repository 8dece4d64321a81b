package check

import (
	"context"
	"fmt"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/setup/check"
	"github.com/gangctl/gangctl/pkg/setup/check/facts"
	"github.com/gangctl/gangctl/pkg/setup/check/smoke"
)

func (o *Options) run(ctx context.Context) error {
	client, namespace, err := cmdutil.Connect(o.Client, o.Namespace)
	if err != nil {
		return err
	}
	shipped, err := install.Scheduler{Version: o.Version.Version, Namespace: o.Target, Image: "gangctl", Replicas: 1, TakeBack: true}.Objects()
	if err != nil {
		return fmt.Errorf("read the manifests: %w", err)
	}
	var further []check.Outcome
	var placed *check.Placed
	if o.Smoke { // first: what it brings about is a sign of life
		// Nothing is placed where nothing can be reached; and then there is one error for that.
		if _, err := client.Release(ctx); err != nil {
			return err
		}
		outcome, measured, err := smoke.Run(ctx, client, smoke.Options{
			Name: "gangctl-smoke-" + o.Suffix(), Namespace: namespace, Scheduler: o.Scheduler, Image: o.Image, Timeout: o.Timeout, Now: o.IO.Clock.Now,
			Progress: func(line string) { fmt.Fprintln(o.IO.ErrOut, line) },
		})
		if err != nil {
			return err
		}
		further, placed = append(further, outcome), measured
	}
	collected, err := facts.Collect(ctx, client, facts.Options{Namespace: namespace, Version: o.Version, Shipped: shipped, Before: o.Before, Try: o.Before, Now: o.IO.Clock.Now})
	if err != nil {
		return err
	}
	checks := check.Cluster()
	if o.Before {
		checks = check.Before()
	}
	report := check.NewReport(checks, collected, further...)
	report.Smoke = placed
	if err := o.print(report); err != nil {
		return err
	}
	if report.Status.Failed() {
		return cmdutil.ExitError(int(CodeFailed))
	}
	return nil
}

func (o *Options) print(r *check.Report) error {
	if !o.Output.IsTable() {
		return cmdutil.Encode(o.IO, &o.Output, r)
	}
	_, err := fmt.Fprint(o.IO.Out, Text(r, o.IO, o.IO.OutStyled))
	return err
}
