package attach

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

// execute runs a command in a container, and passes on what goes in and comes out: over a WebSocket, or SPDY where the API server
// or a proxy before it knows no better.
func (o *Options) execute(ctx context.Context, client *kube.Client, pod *corev1.Pod, container string, command []string) error {
	tty := o.IO.IsTerminal()
	request := client.Typed.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: container, Command: command, Stdin: tty || o.Stdin, Stdout: true, Stderr: !tty, TTY: tty,
	}, scheme.ParameterCodec)
	url := request.URL()
	socket, err := remotecommand.NewWebSocketExecutor(client.Config, "GET", url.String())
	if err != nil {
		return err
	}
	spdy, err := remotecommand.NewSPDYExecutor(client.Config, "POST", url)
	if err != nil {
		return err
	}
	executor, err := remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return err
	}
	streams := remotecommand.StreamOptions{Stdout: o.IO.VerbatimOut(), Tty: tty}
	if tty || o.Stdin {
		streams.Stdin = o.IO.In
	}
	if !tty {
		streams.Stderr = o.IO.VerbatimErrOut()
		return executor.StreamWithContext(ctx, streams)
	}
	restore, err := o.IO.Raw()
	if err != nil {
		return err
	}
	defer func() { _ = restore() }() // the error has no reader any more
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	streams.TerminalSizeQueue = &sizes{ended: ctx.Done(), io: o.IO}
	return executor.StreamWithContext(ctx, streams)
}

// lookAgain is how often the size of the terminal is looked at.
const lookAgain = 250 * time.Millisecond

// sizes reports each new size of the terminal.
type sizes struct {
	ended <-chan struct{}
	io    *iostreams.IOStreams
	last  remotecommand.TerminalSize
}

// Next implements remotecommand.TerminalSizeQueue.
func (s *sizes) Next() *remotecommand.TerminalSize {
	for {
		columns, rows := s.io.Size()
		if now := (remotecommand.TerminalSize{Width: uint16(columns), Height: uint16(rows)}); now != s.last {
			s.last = now
			return &now
		}
		select {
		case <-s.ended:
			return nil
		case <-s.io.Clock.After(lookAgain):
		}
	}
}
