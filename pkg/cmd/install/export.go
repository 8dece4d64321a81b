package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
)

// export prints the objects as they would be applied, in that order.
func export(io *iostreams.IOStreams, scheduler install.Scheduler) error {
	objects, err := scheduler.Objects()
	if err != nil {
		return err
	}
	return printYAML(io, objects)
}

func printYAML(io *iostreams.IOStreams, objects []*unstructured.Unstructured) error {
	for i, object := range apply.Ordered(objects) {
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("write %s: %w", apply.Describe(object), err)
		}
		if i > 0 {
			fmt.Fprintln(io.Out, "---")
		}
		fmt.Fprintf(io.Out, "%s", data)
	}
	return nil
}
