package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/sandbox/datadir"
	"github.com/gangctl/gangctl/sandbox/session"
	"github.com/gangctl/gangctl/sandbox/supervise"
)

func newStatus(env Env) *cobra.Command {
	var open func() (session.Session, error)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show whether the sandbox runs, and each of its components",
		Long: `Show whether the sandbox runs, and each of its components. The exit code is 0
only if it is ready and every component runs.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			sess, err := open()
			if err != nil {
				return err
			}
			return status(env, sess)
		},
	}
	open = dataDir(cmd, env)
	return cmd
}

func status(env Env, sess session.Session) error {
	marker, err := sess.Dir.Marker()
	if errors.Is(err, fs.ErrNotExist) {
		return failure.Errorf("there is no sandbox in %s", sess.Dir).WithHint("start one: gangctl-sandbox up --data-dir %s", sess.Dir)
	}
	if err != nil {
		return err
	}
	state, err := sess.State()
	if err != nil {
		return err
	}
	if state == nil {
		return failure.Errorf("the sandbox in %s does not run", sess.Dir).
			WithHint("start it again: gangctl-sandbox up --data-dir %s; or remove it: gangctl-sandbox down --data-dir %s", sess.Dir, sess.Dir)
	}
	if err := printStatus(env.IO.Out, sess, marker, state); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	dead := state.Ended()
	switch {
	case len(dead) > 0:
		return failure.Errorf("%d of the components ended: %v", len(dead), dead).
			WithHint("start it again, objects are kept: gangctl-sandbox up --data-dir %s", sess.Dir)
	case state.Phase != supervise.Ready:
		return failure.Errorf("the sandbox is not ready: %s", state.Phase)
	}
	return nil
}

func printStatus(out io.Writer, sess session.Session, marker *datadir.Marker, state *supervise.State) error {
	err := printer.PrintFields(out, "", 0, printer.Field{Label: "phase", Value: string(state.Phase)}, printer.Field{Label: "data dir", Value: string(sess.Dir)},
		printer.Field{Label: "kubeconfig", Value: marker.Settings.Kubeconfig}, printer.Field{Label: "kubernetes", Value: marker.Kubernetes},
		printer.Field{Label: "supervisor", Value: strconv.Itoa(state.PID)})
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	var rows [][]string
	for _, c := range state.Components {
		what := "running"
		if c.Exit != "" {
			what = "ended: " + c.Exit
		}
		rows = append(rows, []string{c.Name, strconv.Itoa(c.PID), what, sess.Dir.Log(c.Name)})
	}
	return printer.PrintTable(out, printer.Flags{}, 0, []printer.Column{{Name: "Component"}, {Name: "PID"}, {Name: "State"}, {Name: "Log"}}, rows)
}
