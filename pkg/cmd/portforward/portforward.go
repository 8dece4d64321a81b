// Package portforward is `gangctl port-forward`.
package portforward

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// tensorBoard is the port on which TensorBoard listens.
const tensorBoard = "6006"

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	Name    string
	Member  cmdutil.MemberFlags
	Ports   []string
	Address string
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{IO: f.IO, Namespace: f.Namespace, Client: f.Client}
	cmd := &cobra.Command{
		Use:   "port-forward NAME [[LOCAL:]REMOTE…]",
		Short: "Make a port of a member of a job a local one",
		Long: `Make ports of a member of a job ports of this machine, until Ctrl-C: of the member that leads the job, unless --role and --index
name another, or pod/NAME, or the name of a member's pod, stands in place of the job. Without a port it is TensorBoard's, 6006. A local port of 0 is any free one.`,
		Example: `  # TensorBoard of the job, at http://localhost:6006
  gangctl port-forward llama

  # port 8888 of the second worker, here as 9000
  gangctl port-forward llama 9000:8888 --role worker --index 1`,
		SuggestFor: []string{"forward", "tensorboard"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return failure.Usagef("port-forward needs the name of a job").WithHint("for example: gangctl port-forward NAME")
			}
			return nil
		},
		ValidArgsFunction: cmdutil.CompleteMembers(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.Ports = args[0], args[1:]
			if err := o.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return o.run(cmd.Context())
		},
	}
	o.Member.AddFlags(cmd)
	cmd.Flags().StringVar(&o.Address, "address", "127.0.0.1", "Local address to listen on")
	return cmd
}

func (o *Options) validate() error {
	if len(o.Ports) == 0 {
		o.Ports = []string{tensorBoard}
	}
	for _, port := range o.Ports {
		local, remote, both := strings.Cut(port, ":")
		if !both {
			remote = local
		}
		from, err1 := strconv.ParseUint(local, 10, 16)
		to, err2 := strconv.ParseUint(remote, 10, 16)
		if err1 != nil || err2 != nil || to == 0 || from == 0 && !both {
			return failure.Usagef("port %q: want REMOTE or LOCAL:REMOTE, such as 6006 or 9000:6006", port)
		}
	}
	if o.Address != "localhost" && net.ParseIP(o.Address) == nil {
		return failure.Usagef("--address %q: must be an IP address of this machine, or localhost", o.Address)
	}
	return o.Member.Validate()
}

func (o *Options) run(ctx context.Context) error {
	client, namespace, err := cmdutil.Connect(o.Client, o.Namespace)
	if err != nil {
		return err
	}
	member, err := o.Member.Running(ctx, client, namespace, o.Name)
	if err != nil {
		return err
	}
	pod := member.Pod
	dialer, err := dial(client, pod)
	if err != nil {
		return err
	}
	forwarder, err := portforward.NewOnAddressesForStreamingWithContext(ctx, dialer, []string{o.Address}, o.Ports, make(chan struct{}), o.IO.ErrOut, o.IO.ErrOut)
	if err != nil {
		return failure.Errorf("forward ports of pod %s/%s: %w", namespace, pod.Name, err)
	}
	fmt.Fprintf(o.IO.ErrOut, "%s: Ctrl-C ends it\n", pod.Name)
	err = forwarder.ForwardPorts()
	select {
	case <-ctx.Done():
		return nil // that is how it is meant to end
	default:
	}
	if err == nil {
		return failure.Errorf("the connection to pod %s/%s was lost", namespace, pod.Name).WithHint("see how it is: gangctl get %s -n %s", o.Name, namespace)
	}
	return failure.Op{Verb: "create", Resource: corev1.SchemeGroupVersion.WithResource("pods/portforward"), Kind: "port-forward to pod", Namespace: namespace, Name: pod.Name}.Wrap(cmdutil.StreamError(err))
}

// dial prepares the connection: over a WebSocket, or SPDY where the API server or a proxy before it knows no better.
func dial(client *kube.Client, pod *corev1.Pod) (httpstream.Dialer, error) {
	url := client.Typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(client.Config)
	if err != nil {
		return nil, err
	}
	direct := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, client.Config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(tunnel, direct, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
