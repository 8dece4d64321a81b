package submit

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/await"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// dryRun is the value of --dry-run.
type dryRun string

const (
	dryRunNone   dryRun = "none"   // create
	dryRunClient dryRun = "client" // show what would be sent; talk to no cluster
	dryRunServer dryRun = "server" // let the server check everything and store nothing
	dryRunFit    dryRun = "fit"    // say whether the gang would start now
)

// Submission are the options of every way to submit a job.
type Submission struct {
	IO        *iostreams.IOStreams
	Namespace func() (string, error)
	Client    func() (*kube.Client, error)

	DryRun  dryRun
	From    string
	Wait    await.Target
	Timeout time.Duration
	Follow  bool
	Output  printer.Flags
}

func (s *Submission) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flagvalue.Enum(cmd, flags, &s.DryRun, "dry-run", dryRunNone, "Create nothing", dryRunNone, dryRunClient, dryRunServer, dryRunFit)
	flags.StringVar(&s.From, "from", "", "With --dry-run=fit: answer from a saved file instead of the cluster; - is standard input")
	flagvalue.Enum(cmd, flags, &s.Wait, "wait", "", "Return when the job has come so far", await.Scheduled, await.Running, await.Done).
		NoOptDefVal = string(await.Running)
	flags.DurationVar(&s.Timeout, "timeout", 0, "How long --wait waits, such as 10m (default: no limit)")
	flags.BoolVar(&s.Follow, "follow", false, "Print what all members print until the job ends; the exit code is 9 if it fails")
	s.Output.AddFlags(cmd, printer.YAML, printer.JSON, printer.Name)
}

// validate refuses flags that contradict each other.
func (s *Submission) validate(flags *pflag.FlagSet) error {
	switch {
	case s.Timeout < 0:
		return failure.Usagef("--timeout %s: must be greater than zero, such as 10m", s.Timeout)
	case flags.Changed("timeout") && s.Wait == "":
		return failure.Usagef("--timeout has no effect without --wait").WithHint("add --wait, or leave out --timeout")
	case flags.Changed("timeout") && s.Timeout == 0:
		return failure.Usagef("--timeout 0: must be greater than zero, such as 10m").WithHint("leave out --timeout to wait without limit")
	case s.Wait != "" && s.DryRun != dryRunNone:
		return failure.Usagef("--wait has no effect with --dry-run=%s: nothing is created", s.DryRun).WithHint("leave out one of the two flags")
	case s.Follow && s.DryRun != dryRunNone:
		return failure.Usagef("--follow has no effect with --dry-run=%s: nothing is created", s.DryRun).WithHint("leave out one of the two flags")
	case s.Follow && s.Wait != "":
		return failure.Usagef("--wait has no effect with --follow, which goes on until the job ends").WithHint("leave out one of the two flags")
	case s.From != "" && s.DryRun != dryRunFit:
		return failure.Usagef("--from has no effect without --dry-run=fit: nothing is created in a file").WithHint("add --dry-run=fit, or leave out --from")
	case s.DryRun == dryRunFit && s.Output.Output == printer.Name:
		return failure.Usagef("--output name: the answer of --dry-run=fit is no object").WithHint("use -o json or -o yaml, or leave it out")
	}
	return s.Output.Validate()
}

// run submits, or does what --dry-run says instead.
func (s *Submission) run(ctx context.Context, p plan) error {
	if s.DryRun == dryRunFit {
		return s.fit(ctx, batch{plans: []plan{p}})
	}
	wanted, err := s.offline(p)
	if err != nil {
		return err
	}
	if s.DryRun == dryRunClient {
		return s.print(wanted[0])
	}
	client, err := s.Client()
	if err != nil {
		return err
	}
	c := &creator{client: client, io: s.IO, dryRun: s.DryRun == dryRunServer}
	if wanted, err = s.choose(ctx, c, p); err != nil {
		return err
	}
	stored, err := c.create(ctx, wanted[0])
	if err != nil {
		return err
	}
	if err := s.print(stored); err != nil {
		return s.unseen(err, stored.Job)
	}
	if s.Follow {
		return s.follow(ctx, client, stored.Job)
	}
	if s.Wait == "" {
		return nil
	}
	return s.wait(ctx, client, stored.Job, s.Timeout)
}

// wait waits until a stored job has come as far as --wait says; a timeout of 0 is no limit.
func (s *Submission) wait(ctx context.Context, client *kube.Client, object *unstructured.Unstructured, timeout time.Duration) error {
	w := &await.Waiter{Client: client, IO: s.IO, Target: s.Wait, Timeout: timeout, Why: await.WhyPending(client, s.IO)}
	job, err := jobs.Read(object)
	if err != nil {
		return err
	}
	return w.Wait(ctx, job)
}

// offline renders the objects without a cluster: what is wrong with flags or files needs none to be told. --dialect auto is then
// what it is where gangctl's own scheduler runs, and a queue that of Kueue unless the dialect has some.
func (s *Submission) offline(plans ...plan) ([]*render.Objects, error) {
	var all []*render.Objects
	for _, p := range plans {
		d := p.usual()
		if w, _ := dialect.WriterOf(d.dialect); !w.Queues { // whom else could it be for
			d.queue, d.local = "", d.queue
		}
		objects, err := p.make(d)
		if err != nil {
			return nil, err
		}
		all = append(all, objects)
	}
	return all, nil
}
