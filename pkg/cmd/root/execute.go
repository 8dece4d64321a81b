package root

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// Execute runs a command tree and returns the exit code. What stopped it is on standard error. A command whose output is lost
// has not succeeded.
func Execute(ctx context.Context, f *cmdutil.Factory, cmd *cobra.Command) failure.Code {
	failed := failure.From(cmd.ExecuteContext(ctx))
	if failed == nil {
		failed = failure.From(f.IO.OutErr())
	}
	if failed == nil {
		return failure.CodeOK
	}
	failure.Print(f.IO, failed)
	return failed.Code
}
