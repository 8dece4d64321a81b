package install

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/install/operator"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// images are the full names of everything that `install` may have a cluster pull, for a version of gangctl.
func images(version string) ([]string, error) {
	scheduler, err := Settings{Registry: defaultRegistry}.image(version)
	if err != nil {
		return nil, err
	}
	training, err := operator.Image()
	if err != nil {
		return nil, err
	}
	return []string{scheduler, training}, nil
}

// NewImagesCommand returns the command.
func NewImagesCommand(f *cmdutil.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "images",
		Short: "List the images to mirror for a cluster without Internet",
		Long: `List the images that a cluster pulls for what this gangctl installs, one a line. Copy them to a registry that
your nodes reach, under the same last part of the name, and install from there with --registry.`,
		Example: `  # which images there are
  gangctl install images

  # copy them with a tool of your choice
  gangctl install images | xargs -I{} sh -c 'skopeo copy --all docker://{} docker://registry.example.com/ml/$(basename {})'`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			names, err := images(f.Version.Version)
			if err != nil {
				return err
			}
			for _, name := range names {
				fmt.Fprintln(f.IO.Out, name)
			}
			return nil
		},
	}
}
