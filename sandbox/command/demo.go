package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/demo"
)

// gpuHourPrice is about what an hour of a data-centre GPU costs, in dollars.
const gpuHourPrice = 2.50

func newDemo(env Env) *cobra.Command {
	o := demo.Options{Out: env.IO.Out, Err: env.IO.ErrOut}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what gang scheduling is for: two gangs, half enough GPUs",
		Long: `Play two examples with the real commands, first with Kubernetes' default scheduler,
then with the gang scheduler, and show what each makes of them side by side.
Each scheduler gets a sandbox of its own, which is gone afterwards.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.GPUHourPrice <= 0 {
				return failure.Usagef("--gpu-hour-price must be more than zero, not %g", o.GPUHourPrice)
			}
			var err error
			if o.Sandbox, err = os.Executable(); err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			if o.Gangctl, err = nextTo(o.Sandbox, "gangctl"); err != nil {
				return err
			}
			return demo.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().Float64Var(&o.GPUHourPrice, "gpu-hour-price", gpuHourPrice, "what a GPU costs an hour, in dollars")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long each step may take")
	return cmd
}

// nextTo finds a program in the directory of another one, else on the PATH.
func nextTo(program, name string) (string, error) {
	path := filepath.Join(filepath.Dir(program), name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", failure.Errorf("the demo needs %s, which is neither next to %s nor on the PATH", name, program).
			WithHint("build both: make build")
	}
	return path, nil
}
