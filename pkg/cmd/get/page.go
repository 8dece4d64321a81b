package get

import (
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// Print prints a job and its members as `gangctl get` does.
func Print(io *iostreams.IOStreams, job *gang.Job, s summary.Summary) error {
	o := &Options{}
	o.IO = io
	return o.print(job, s)
}
