// Package controlplane runs inside the child processes of a sandbox: each one is
// this same program under the name of a Kubernetes component. They are processes
// because the components keep feature gates, flags and metrics in globals, and
// because a killed one must not take the others along.
//
// Nothing but the program itself imports it: a test that did would link a whole
// control plane.
package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	defaultscheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/gangctl/gangctl/sandbox/addon"
	"github.com/gangctl/gangctl/sandbox/component"
	"github.com/gangctl/gangctl/sandbox/kubelet"
	"github.com/gangctl/gangctl/sandbox/operator"
	gangscheduler "github.com/gangctl/gangctl/scheduler"
)

// Run is `gangctl-sandbox component NAME --data-dir DIR ARG…`; args begin with
// NAME. The data dir is there for people who read process lists. It returns the
// exit code of the process; until then it ends the process itself when lifeline
// closes, that is when the parent is gone, however it went.
func Run(args []string, lifeline io.Reader) int {
	if len(args) < 3 || args[1] != "--data-dir" {
		fmt.Fprintln(os.Stderr, "error: the components of a sandbox are started by `gangctl-sandbox up`")
		return 2
	}
	name, args := args[0], args[3:]
	go followParent(lifeline)
	// The components look at the command line of their process here and there.
	os.Args = append([]string{name}, args...)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	switch name {
	case component.Etcd:
		return report(runEtcd(ctx, args))
	case component.APIServer:
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") { // a program of another version
			return report(component.RunProgram(ctx, args[0], args[1:]))
		}
		stop() // it has a signal handler of its own
		cmd := apiserver.NewAPIServerCommand()
		cmd.SetArgs(args)
		return cli.Run(cmd)
	case component.ControllerManager:
		stop()
		cmd := controllermanager.NewControllerManagerCommand()
		cmd.SetArgs(args)
		return cli.Run(cmd)
	case component.DefaultScheduler:
		stop()
		cmd := defaultscheduler.NewSchedulerCommand()
		cmd.SetArgs(args)
		return cli.Run(cmd)
	case component.GangScheduler:
		stop()
		cmd := gangscheduler.NewCommand()
		cmd.SetArgs(args)
		return report(cmd.ExecuteContext(context.Background()))
	case component.Operator:
		return report(operator.Run(ctx, args))
	case component.Nodes:
		return report(kubelet.Run(ctx, args))
	}
	if addon.Known(name) {
		return report(addon.Run(ctx, args))
	}
	return report(fmt.Errorf("no component is called %q", name))
}

func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

// followParent blocks until the lifeline closes; then the process sends itself
// SIGTERM, and SIGKILL after the grace period. A pipe shows the parent's end on
// every system, even when the parent is killed.
func followParent(lifeline io.Reader) {
	_, _ = io.Copy(io.Discard, lifeline)
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return
	}
	_ = self.Signal(syscall.SIGTERM)
	<-time.After(component.Grace)
	_ = self.Kill()
}
