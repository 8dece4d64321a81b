package submit

import (
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/printer"
	"github.com/gangctl/gangctl/pkg/render"
)

// print shows rendered objects; the PodGroup may be nil.
func (o *TFOptions) print(job *kubeflowv1.TFJob, podGroup *spv1alpha1.PodGroup) error {
	j, err := render.Unstructured(job)
	if err != nil {
		return err
	}
	if podGroup == nil {
		return o.printStored(j, nil)
	}
	pg, err := render.Unstructured(podGroup)
	if err != nil {
		return err
	}
	return o.printStored(j, pg)
}

// printStored shows objects as they are; the PodGroup may be nil. JSON is one document, a List if there are two objects.
func (o *TFOptions) printStored(job, podGroup *unstructured.Unstructured) error {
	objects := []unstructured.Unstructured{*job}
	if podGroup != nil {
		objects = append(objects, *podGroup)
	}
	p, err := o.printer()
	if err != nil {
		return err
	}
	if o.Output.Output == printer.JSON && len(objects) > 1 {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}, Items: objects}
		return p.PrintObj(list, o.IO.Out)
	}
	for i := range objects {
		if err := p.PrintObj(&objects[i], o.IO.Out); err != nil {
			return err
		}
	}
	return nil
}

// unseen says of a job that could not be shown whether it is there all the same.
func (o *TFOptions) unseen(err error, job *unstructured.Unstructured) error {
	if o.DryRun != dryRunNone {
		return err
	}
	return failure.Errorf("TFJob %s/%s was created, but could not be shown: %w", job.GetNamespace(), job.GetName(), err).
		WithHint("see it with `gangctl get %s -n %s`", job.GetName(), job.GetNamespace())
}

func (o *TFOptions) printer() (printers.ResourcePrinter, error) {
	if !o.Output.IsTable() {
		return o.Output.Printer()
	}
	done := map[dryRun]string{dryRunNone: "created", dryRunClient: "created (dry run)", dryRunServer: "created (server dry run)"}
	return &printers.NamePrinter{Operation: done[o.DryRun]}, nil
}
