// Package report is `gangctl report`.
package report

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/localfile"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose"
)

// html is the format of a page.
const html = "html"

// Options are the dependencies, flags and arguments of the command.
type Options struct {
	cmdutil.JobOptions

	// Kind is the kind of the job of the query, where one is named.
	Kind string
	From string
	// File is where the report goes; empty for standard output. Overwrite allows a file that is there.
	File      string
	Overwrite bool
	Output    printer.Flags
}

// NewCommand returns the command; runF replaces the run in tests.
func NewCommand(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{}
	cmd := &cobra.Command{
		Use:   "report NAME | KIND/NAME",
		Short: "Write the life of a job as a page to look at and to pass on",
		Long: `Write what is known of the life of a job as one HTML page: when each member was created, got its node, started, was ready, was
restarted and ended; where the members are, and who has the other accelerators; what why-pending reports now, and what was reported before;
what was submitted; and what of all that could not be seen.

The page needs nothing from elsewhere, neither scripts nor styles, and holds no values of environment variables that were given with
--env. With -o json it is the same as data. NAME is a job of any kind; KIND/NAME a tfjob/, pytorchjob/, mpijob/, xgboostjob/,
paddlejob/, jaxjob/, trainjob/, jobset/, lws/, rayjob/, vcjob/, job/ or pod/.`,
		Example: `  # a page to look at
  gangctl report llama --file llama.html

  # the same from what a bug report holds, without a cluster
  gangctl report llama --from llama.yaml.gz > llama.html`,
		SuggestFor: []string{"html", "timeline", "dashboard"},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.From, "from", "", "Report from a saved file instead of the cluster; - is standard input")
	flags.StringVar(&o.File, "file", "", "Write to this file instead of standard output; - is standard output")
	flags.BoolVar(&o.Overwrite, "overwrite", false, "Write over the file if it is there")
	o.Output.AddFlags(cmd, html, printer.JSON)
	o.Bind(cmd, f, func(*cobra.Command) error { return o.validate() }, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, o)
		}
		return o.run(ctx)
	})
	return cmd
}

func (o *Options) validate() error {
	if o.Output.Output == "" {
		o.Output.Output = html
	}
	if o.Output.Output != html && o.Output.Output != printer.JSON {
		return failure.Usagef("--output %q: must be one of html, json", o.Output.Output)
	}
	if kind, name, ok := strings.Cut(o.Name, "/"); ok {
		if kind == "" || name == "" || strings.Contains(name, "/") {
			return failure.Usagef("%q: want KIND/NAME", o.Name)
		}
		if !diagnose.KnownKind(kind) {
			return failure.Usagef("unknown kind %q: must be one of %s", kind, strings.Join(diagnose.KindNames(), ", "))
		}
		o.Kind, o.Name = kind, name
	}
	if o.File == localfile.Stdin {
		o.File = "" // standard output, as with other programs
	}
	switch {
	case o.Overwrite && o.File == "":
		return failure.Usagef("--overwrite has no effect without --file").WithHint("leave it out, or name a file: --file %s.html", o.Name)
	case o.File == "" && o.Output.Output == html && o.IO.Width() > 0:
		return failure.Usagef("refusing to write HTML to a terminal").WithHint("write it to a file: gangctl report %s --file %s", shell.Quote(o.Name), shell.Quote(o.Name+".html"))
	}
	return nil
}
