package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/credential"
	"github.com/gangctl/gangctl/sandbox/node"
	"github.com/gangctl/gangctl/sandbox/session"
	"github.com/gangctl/gangctl/sandbox/setting"
	"github.com/gangctl/gangctl/sandbox/supervise"
)

// nodeEnv has the dependencies that the node commands share.
type nodeEnv struct {
	Env
	open func() (session.Session, error)
}

func newNode(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Add, remove, cordon and fail nodes while the sandbox runs",
		Args:  knownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	n := &nodeEnv{Env: env, open: dataDir(cmd, env)}
	cmd.AddCommand(newNodeAdd(n),
		n.each("remove", "removed", "Remove nodes", `Remove nodes. Their pods go when the pod garbage collector notices, after about
a minute, as in any cluster.`, node.Changer.Remove),
		n.each("cordon", "cordoned", "Keep new pods off nodes", "", func(c node.Changer, ctx context.Context, name string) error {
			return c.Cordon(ctx, name, true)
		}),
		n.each("uncordon", "uncordoned", "Let pods on nodes again", "", func(c node.Changer, ctx context.Context, name string) error {
			return c.Cordon(ctx, name, false)
		}),
		n.each("fail", "failed", "Kill the kubelets of nodes", `Kill the kubelets of nodes: heartbeats stop, pods on them freeze, and the node
controller taints them and later evicts their pods, as it does with a machine
that lost its power.`, node.Changer.Fail),
		n.each("recover", "recovered", "Start the kubelets of failed nodes again", "", node.Changer.Recover))
	return cmd
}

// each returns a command that does one thing to every node that is named.
func (n *nodeEnv) each(use, done, short, long string, do func(node.Changer, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use:   use + " NAME...",
		Short: short,
		Long:  long,
		Args:  someArgs,
		RunE: func(cmd *cobra.Command, names []string) error {
			changer, _, err := n.changer()
			if err != nil {
				return err
			}
			var errs []error
			for _, name := range names {
				if err := do(changer, cmd.Context(), name); err != nil {
					errs = append(errs, err)
					continue
				}
				fmt.Fprintf(n.IO.Out, "node/%s %s\n", name, done)
			}
			return failure.All(errs...)
		},
	}
}

// changer connects to the running sandbox.
func (n *nodeEnv) changer() (node.Changer, setting.Settings, error) {
	none := node.Changer{}
	sess, err := n.open()
	if err != nil {
		return none, setting.Settings{}, err
	}
	state, err := sess.State()
	if err != nil {
		return none, setting.Settings{}, err
	}
	if state == nil || state.Phase != supervise.Ready {
		return none, setting.Settings{}, failure.Errorf("no sandbox is ready in %s", sess.Dir).
			WithHint("start it: gangctl-sandbox up --data-dir %s", sess.Dir)
	}
	marker, err := sess.Dir.Marker()
	if err != nil {
		return none, setting.Settings{}, err
	}
	config, err := credential.LoadAdmin(sess.Dir)
	if err != nil {
		return none, setting.Settings{}, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return none, setting.Settings{}, fmt.Errorf("create client: %w", err)
	}
	return node.Changer{Client: client, Machine: supervise.Machine(marker.Ports), Now: time.Now}, marker.Settings, nil
}
