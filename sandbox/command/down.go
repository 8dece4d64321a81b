package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/sandbox/session"
)

func newDown(env Env) *cobra.Command {
	var open func() (session.Session, error)
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the sandbox and remove everything of it",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sess, err := open()
			if err != nil {
				return err
			}
			return down(cmd.Context(), env, sess)
		},
	}
	open = dataDir(cmd, env)
	return cmd
}

func down(ctx context.Context, env Env, sess session.Session) error {
	err := sess.Down(ctx)
	if errors.Is(err, session.ErrNone) {
		fmt.Fprintf(env.IO.ErrOut, "there is no sandbox in %s\n", sess.Dir)
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(env.IO.ErrOut, "the sandbox in %s is gone\n", sess.Dir)
	return nil
}
