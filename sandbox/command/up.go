package command

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/sandbox/addon"
	"github.com/gangctl/gangctl/sandbox/credential"
	"github.com/gangctl/gangctl/sandbox/datadir"
	"github.com/gangctl/gangctl/sandbox/node"
	"github.com/gangctl/gangctl/sandbox/session"
	"github.com/gangctl/gangctl/sandbox/setting"
	"github.com/gangctl/gangctl/sandbox/supervise"
)

type upOptions struct {
	env  Env
	open func() (session.Session, error)

	settings   setting.Settings
	cpu        string
	memory     string
	scheduler  string
	foreground bool
}

func newUp(env Env) *cobra.Command {
	o := &upOptions{env: env, settings: setting.Defaults()}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the sandbox and wait until it can be used",
		Long: `Start the sandbox and wait until it can be used: the API server answers, nodes
are ready, the scheduler and the operator have synced.

Simulated pods run for --run-for and then succeed. Annotations of a pod change that:
  sandbox.gangctl.dev/run-for: 90s      how long it runs; 0 for ever
  sandbox.gangctl.dev/exit-code: "137"  what its containers end with
  sandbox.gangctl.dev/log-lines: "50"   how many steps it logs, or the text to log
A pod that fails is restarted in place if its restartPolicy says so. Parameter
servers of TFJobs run until they are deleted.

With --run-image gangctl=bin/gangctl, pods of that image are not simulated: their
container runs as a process, with the token of its service account, so that the
scheduler can be installed and run as in a cluster. PodGroups and the rights of
the scheduler come with that installation then; start with --scheduler default.

With --with jobset,trainer,lws,ray,kueue, or some of them, the controllers that
these projects release run, with their kinds and webhooks; trainer brings jobset,
which it needs. make controllers builds them. An up with fewer, or with --with "",
runs the others no longer; their kinds and objects stay.

With --api-server PROGRAM, the API server is one of another version of Kubernetes, such
as that of your cluster. make old-servers builds some.

With --volumes, a claim of the default StorageClass gets a volume when a pod that has
it is placed: an empty directory in /tmp/hostpath_pv, which goes with the claim and
which no simulated pod reads. An up without it provisions none any more.

With --scheduler gang, pods are scheduled whose schedulerName is gang-scheduler;
with --scheduler default, those without one, as usual.

A sandbox of which processes ended or were killed is started again by another
up: objects, credentials and settings are kept until down, except for settings
that are given again.`,
		Example: `  gangctl-sandbox up
  gangctl-sandbox up --nodes 100 --gpus 8 --run-for 5m
  eval "$(gangctl-sandbox up | tail -1)"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.Flags().Changed) },
	}
	o.open = dataDir(cmd, env)
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *upOptions) addFlags(f *pflag.FlagSet) {
	s := &o.settings
	f.IntVar(&s.Nodes, "nodes", s.Nodes, "number of nodes")
	f.StringVar(&o.cpu, "cpu", s.CPU.String(), "CPUs of each node")
	f.StringVar(&o.memory, "memory", s.Memory.String(), "memory of each node")
	f.Int64Var(&s.GPUs, "gpus", s.GPUs, "GPUs of each node")
	f.StringVar(&s.GPUResource, "gpu-resource", s.GPUResource, "resource that GPUs are counted in")
	f.StringVar(&s.NodeFile, "node-file", "", "file of Node objects to create instead (YAML)")
	f.StringVar(&o.scheduler, "scheduler", string(s.Scheduler), "who schedules pods: gang, default or none")
	f.StringVar(&s.Serve, "serve", "", "further names that the gang scheduler answers to, such as volcano,kube-batch")
	f.StringVar(&s.APIServer, "api-server", "", "program to run as the API server: a kube-apiserver of another version of Kubernetes")
	f.BoolVar(&s.NativeGangs, "native-gangs", false, "have the API server serve Kubernetes' own PodGroups (scheduling.k8s.io/v1beta1)")
	f.BoolVar(&s.CompositeGroups, "composite-groups", false, "have it serve composite PodGroups, too (scheduling.k8s.io/v1alpha3, alpha); with --native-gangs")
	f.BoolVar(&s.Volumes, "volumes", false, "provision volumes of claims: there is a default StorageClass")
	f.BoolVar(&s.Operator, "operator", s.Operator, "run the Kubeflow Training Operator (TFJobs)")
	f.StringVar(&s.OperatorGangScheduler, "operator-gang-scheduler", "", "have the operator create PodGroups for the scheduler of this name")
	f.StringVar(&s.With, "with", "", "controllers of other projects to run: "+addon.Names()+" (several with commas between them)")
	f.StringVar(&s.Controllers, "controllers", "", "folder of the controllers of --with, which make controllers fills (default the folder kinds next to this program)")
	f.StringVar(&s.RunImage, "run-image", "", "run containers of the image NAME as processes of a program: NAME=PROGRAM (pods are simulated otherwise)")
	f.StringVar(&s.Kubeconfig, "kubeconfig", "", "file to write the kubeconfig to (default DATA-DIR/kubeconfig)")
	f.IntVar(&s.Port, "port", 0, "port of the API server on 127.0.0.1 (0: any free one)")
	f.DurationVar(&s.RunFor, "run-for", s.RunFor, "how long simulated pods run (0: for ever)")
	f.Float64Var(&s.FailRate, "fail-rate", 0, "share of simulated pods that fail, 0 to 1")
	f.BoolVar(&o.foreground, "foreground", false, "stay until Ctrl-C, then stop everything")
}

func (o *upOptions) run(ctx context.Context, isTyped func(flag string) bool) error {
	sess, err := o.open()
	if err != nil {
		return err
	}
	found, err := look(sess)
	if err != nil {
		return err
	}
	if err := o.complete(found, isTyped); err != nil {
		return err
	}
	if found.whole() {
		return o.join(ctx, found)
	}
	if err := o.claim(ctx, found); err != nil {
		return err
	}
	// Whatever this process was started with, such as the file of a lock, is not
	// for processes that outlive it.
	if err := session.CloseFilesOnExec(); err != nil {
		return err
	}
	if o.foreground {
		log := slog.New(slog.NewTextHandler(o.env.IO.ErrOut, nil))
		return supervise.Run(ctx, sess.Dir, log, func() { o.print(sess.Dir) })
	}
	state, err := sess.Start(ctx, o.progress)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.env.IO.ErrOut, "ready after %s\n", state.Took.Round(100*time.Millisecond))
	o.print(sess.Dir)
	return nil
}

// complete puts together what was typed and what the sandbox was, checks it and
// makes paths absolute.
func (o *upOptions) complete(found *existing, isTyped func(flag string) bool) error {
	s := &o.settings
	s.Scheduler = setting.Scheduler(o.scheduler)
	for _, q := range []struct {
		flag, text string
		to         *resource.Quantity
	}{{"cpu", o.cpu, &s.CPU}, {"memory", o.memory, &s.Memory}} {
		quantity, err := resource.ParseQuantity(q.text)
		if err != nil {
			return failure.Usagef("--%s %q: %w", q.flag, q.text, err)
		}
		*q.to = quantity
	}
	if found.marker != nil {
		*s = found.marker.Settings.Overlay(*s, isTyped)
	}
	if s.Kubeconfig == "" {
		s.Kubeconfig = found.Dir.Kubeconfig()
	}
	if err := o.completeControllers(); err != nil {
		return err
	}
	name, program, isImage := strings.Cut(s.RunImage, "=")
	for _, path := range []*string{&s.Kubeconfig, &s.NodeFile, &s.APIServer, &s.Controllers, &program} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return fmt.Errorf("path %s: %w", *path, err)
		}
		*path = abs
	}
	if isImage && program != "" {
		s.RunImage = name + "=" + program
		if err := requireProgram("run-image", program); err != nil {
			return err
		}
	}
	if s.APIServer != "" {
		if err := requireProgram("api-server", s.APIServer); err != nil {
			return err
		}
	}
	if err := s.Validate(); err != nil {
		return failure.Usagef("%w", err)
	}
	// Mistakes in files are reported before anything is started.
	for _, c := range addon.Chosen(s.With) {
		if err := c.Require(s.Controllers); err != nil {
			return err
		}
	}
	if _, err := supervise.Desired(*s, node.Machine{}, time.Time{}); err != nil {
		return failure.Errorf("--node-file: %w", err)
	}
	return nil
}

// completeControllers checks the names of --with, and has them in the form in which they are compared; their folder is known.
func (o *upOptions) completeControllers() (err error) {
	s := &o.settings
	if s.With, err = addon.Select(s.With); err != nil || s.With == "" || s.Controllers != "" {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	s.Controllers = filepath.Join(filepath.Dir(program), "kinds")
	return nil
}

// claim ends what is left of an earlier run and takes the data dir.
func (o *upOptions) claim(ctx context.Context, found *existing) error {
	if err := credential.RequireOwnFile(o.settings.Kubeconfig); err != nil {
		return err
	}
	if found.marker != nil {
		if len(found.ended) > 0 {
			fmt.Fprintf(o.env.IO.ErrOut, "starting again: %s had ended\n", strings.Join(found.ended, ", "))
		}
		// Components of a supervisor that was killed still have the ports.
		if err := found.Stop(ctx); err != nil {
			return err
		}
	}
	if o.settings.Port != 0 {
		if err := supervise.RequireFree(o.settings.Port); err != nil {
			return err
		}
	}
	_, err := found.Dir.Claim(markerOf(o.settings))
	return err
}

// join is `up` on a sandbox that runs already.
func (o *upOptions) join(ctx context.Context, found *existing) error {
	if diff := setting.Diff(found.marker.Settings, o.settings); diff != "" {
		return failure.Errorf("a sandbox with other settings runs in %s: %s", found.Dir, diff).
			WithHint("end it first: gangctl-sandbox down --data-dir %s; or run another one alongside it with another --data-dir", found.Dir)
	}
	if _, err := found.WaitReady(ctx, nil, o.progress); err != nil {
		return err
	}
	fmt.Fprintf(o.env.IO.ErrOut, "the sandbox in %s runs already\n", found.Dir)
	o.print(found.Dir)
	return nil
}

func (o *upOptions) progress(step string) { fmt.Fprintf(o.env.IO.ErrOut, "%s …\n", step) }

// print explains how to use the cluster; the last line is one for a shell.
func (o *upOptions) print(dir datadir.Dir) {
	out := o.env.IO.Out
	fmt.Fprintf(out, "data dir:   %s\n", dir)
	fmt.Fprintf(out, "kubeconfig: %s\n", o.settings.Kubeconfig)
	fmt.Fprintf(out, "context:    %s\n", credential.Context)
	fmt.Fprintf(out, "export KUBECONFIG=%s\n", shell.Quote(o.settings.Kubeconfig))
}

// requireProgram refuses a file that cannot be run.
func requireProgram(flag, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return failure.Errorf("--%s: %w", flag, err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return failure.Errorf("--%s: %s is no program", flag, path)
	}
	return nil
}
