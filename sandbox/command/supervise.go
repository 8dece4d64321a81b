package command

import (
	"encoding/json"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/session"
	"github.com/gangctl/gangctl/sandbox/supervise"
)

// newSupervise is the process that `up` leaves behind.
func newSupervise(env Env) *cobra.Command {
	var open func() (session.Session, error)
	cmd := &cobra.Command{
		Use:    "supervise",
		Short:  "Keep the components of a sandbox (started by up)",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sess, err := open()
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(env.IO.ErrOut, nil))
			ready := false
			err = supervise.Run(cmd.Context(), sess.Dir, log, func() { ready = true })
			if err != nil && !ready { // later the reader is gone
				f := failure.From(err)
				_ = json.NewEncoder(env.IO.Out).Encode(session.Report{Error: f.Message, Hint: f.Hint})
			}
			return err
		},
	}
	open = dataDir(cmd, env)
	return cmd
}
