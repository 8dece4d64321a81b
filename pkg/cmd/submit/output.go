package submit

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

// print shows a job and what belongs to it as they are.
func (s *Submission) print(o *render.Objects) error { return s.printAll(o.All()) }

// printAll shows objects as they are. JSON is one document, a List if there are several objects.
func (s *Submission) printAll(all []*unstructured.Unstructured) error {
	p, err := s.printer()
	if err != nil {
		return err
	}
	if s.Output.Output == printer.JSON && len(all) > 1 {
		var items []unstructured.Unstructured
		for _, u := range all {
			items = append(items, *u)
		}
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}, Items: items}
		return p.PrintObj(list, s.IO.Out)
	}
	for _, u := range all {
		if err := p.PrintObj(u, s.IO.Out); err != nil {
			return err
		}
	}
	return nil
}

// unseen says of a job that could not be shown whether it is there all the same.
func (s *Submission) unseen(err error, job *unstructured.Unstructured) error {
	if s.DryRun != dryRunNone {
		return err
	}
	return failure.Errorf("%s %s/%s was created, but could not be shown: %w", job.GetKind(), job.GetNamespace(), job.GetName(), err).
		WithHint("see it with `gangctl get %s -n %s`", job.GetName(), job.GetNamespace())
}

func (s *Submission) printer() (printers.ResourcePrinter, error) {
	if !s.Output.IsTable() {
		return s.Output.Printer()
	}
	done := map[dryRun]string{dryRunNone: "created", dryRunClient: "created (dry run)", dryRunServer: "created (server dry run)"}
	return &printers.NamePrinter{Operation: done[s.DryRun]}, nil
}
