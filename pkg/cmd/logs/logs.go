// Package logs is `gangctl logs`.
package logs

import (
	"context"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/flagvalue"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/logs"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// raw is the format without prefixes.
const raw = "raw"

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	cmdutil.JobOptions

	Follow     bool
	Previous   bool
	Timestamps bool
	Since      time.Duration
	// Tail is negative for all lines.
	Tail       int64
	Roles      []string
	Index      string
	Failed     bool
	FirstError bool
	Include    string
	Exclude    string
	Container  string
	MaxStreams int
	Output     printer.Flags

	include, exclude *regexp.Regexp
	indexes          func(int) bool
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print what the members of a job print",
		Long: `Print the logs of all members of a job, each line with its member in front: [worker-2]. With pod/NAME, or the name of a member's
pod, it is the log of that member.

Without -f, lines come in the order of their times; with more members than --max-streams, one member comes after the other. With
-f, lines come as they are written, each of them once: over containers that are restarted, members that are replaced, and
connections that break. Where members have not started yet it waits for them, and reports what they wait for. With more members than
--max-streams, connections take turns.

How a member ended that failed is reported on standard error: its exit code and the reason.`,
		Example: `  # what all workers print, until the job ends
  gangctl logs llama -f --role worker

  # one member
  gangctl logs pod/llama-worker-2

  # what was the matter? The end of the log of the member that failed first
  gangctl logs llama --first-error --tail 50`,
		SuggestFor: []string{"log", "tail", "output"},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.Follow, "follow", "f", false, "Go on until the job ends, and wait for members that have not started")
	flags.BoolVarP(&o.Previous, "previous", "p", false, "Print the run before of containers that were restarted")
	flags.BoolVar(&o.Timestamps, "timestamps", false, "Print the time of each line")
	flags.DurationVar(&o.Since, "since", 0, "Only lines that are younger: 10m, 1h30m")
	flags.Int64Var(&o.Tail, "tail", -1, "Only so many of the last lines of each member; -1 is all")
	flags.StringSliceVar(&o.Roles, "role", nil, "Only members of these roles: worker, ps, chief, …")
	flags.StringVar(&o.Index, "index", "", "Only members with these indexes: 0, or 0,2-5")
	flags.BoolVar(&o.Failed, "failed", false, "Only members that have failed")
	flags.BoolVar(&o.FirstError, "first-error", false, "Only the member that failed first")
	flags.StringVar(&o.Include, "include", "", "Only lines that match this regular expression")
	flags.StringVar(&o.Exclude, "exclude", "", "No lines that match this regular expression")
	flags.StringVarP(&o.Container, "container", "c", "", "Container; default is the one that does the work")
	flags.IntVar(&o.MaxStreams, "max-streams", maxStreams, "How many connections to open at a time")
	flagvalue.Check(flags, o.selectLines, "include", "exclude", "index")
	flagvalue.Check(flags, o.checkNumbers, "since", "tail", "max-streams")
	o.Output.AddFlags(cmd, raw, printer.JSON)
	o.Bind(cmd, f, func(*cobra.Command) error { return o.validate() }, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, o)
		}
		return o.run(ctx)
	})
	cmd.ValidArgsFunction = cmdutil.CompleteMembers(f)
	return cmd
}

func (o *Options) validate() error {
	if o.Output.Output != "" && o.Output.Output != raw && o.Output.Output != printer.JSON {
		return failure.Usagef("--output %q: must be one of raw, json", o.Output.Output)
	}
	switch {
	case o.Follow && o.Previous:
		return failure.Usagef("--previous is over: it cannot be followed").WithHint("leave out --follow or --previous")
	case o.Follow && (o.Failed || o.FirstError):
		return failure.Usagef("--failed and --first-error are for what has happened, not for --follow").WithHint("leave out one of them")
	case o.Failed && o.FirstError:
		return failure.Usagef("--failed and --first-error cannot be used together").WithHint("leave out one of them")
	case o.FirstError && o.Previous:
		return failure.Usagef("--first-error finds the right run itself").WithHint("leave out --previous")
	}
	if err := o.checkNumbers(); err != nil {
		return err
	}
	return o.selectLines()
}

func (o *Options) checkNumbers() error {
	switch {
	case o.Since < 0:
		return failure.Usagef("--since %s: must not be negative", o.Since)
	case o.Since > 0 && o.Since < time.Second:
		return failure.Usagef("--since %s: must be 1s or more", o.Since)
	case o.Tail < -1:
		return failure.Usagef("--tail %d: must be -1 or more", o.Tail)
	case o.MaxStreams < 1 || o.MaxStreams > 1000:
		return failure.Usagef("--max-streams %d: must be 1 to 1000", o.MaxStreams)
	}
	return nil
}

// selectLines reads which lines are meant, and of which members.
func (o *Options) selectLines() (err error) {
	if o.include, err = pattern("include", o.Include); err != nil {
		return err
	}
	if o.exclude, err = pattern("exclude", o.Exclude); err != nil {
		return err
	}
	o.indexes, err = indexes(o.Index)
	return err
}

func pattern(flag, text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	p, err := regexp.Compile(text)
	if err != nil {
		return nil, failure.Usagef("--%s %q: %w", flag, text, err)
	}
	return p, nil
}

func (o *Options) request() logs.Request {
	q := logs.Request{Previous: o.Previous, Since: o.Since}
	if o.Tail >= 0 {
		q.Tail = &o.Tail
	}
	return q
}
