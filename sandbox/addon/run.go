package addon

import (
	"context"
	"errors"

	"github.com/gangctl/gangctl/sandbox/component"
)

// Run runs a controller until ctx ends, by the command line that Args made.
func Run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("the controllers of a sandbox are started by `gangctl-sandbox up`")
	}
	home, program := args[0], args[1]
	return component.RunProgram(ctx, program, args[2:], "TMPDIR="+home)
}
