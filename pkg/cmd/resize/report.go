package resize

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/suspension"
	"github.com/gangctl/gangctl/pkg/submit/resize"
)

// objects are the objects of a plan that change, the job first.
func objects(p *resize.Plan) []resize.Object {
	all := []resize.Object{p.Job}
	if p.Group.Changed() {
		all = append(all, p.Group)
	}
	return all
}

// print shows the objects as they would be, without what servers keep for themselves.
func (o *Options) print(p *resize.Plan, done string) error {
	var all []*unstructured.Unstructured
	for _, object := range objects(p) {
		all = append(all, object.After)
	}
	return o.printAll(all, done)
}

// printAll shows objects without what servers keep for themselves.
func (o *Options) printAll(all []*unstructured.Unstructured, done string) error {
	var out printers.ResourcePrinter = &printers.NamePrinter{Operation: done}
	if !o.Output.IsTable() {
		var err error
		if out, err = o.Output.Printer(); err != nil {
			return err
		}
	}
	var items []unstructured.Unstructured
	for _, u := range all {
		items = append(items, unstructured.Unstructured{Object: apply.Content(u)})
	}
	if o.Output.Output == printer.JSON && len(items) > 1 {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}}, Items: items}
		return out.PrintObj(list, o.IO.Out)
	}
	for i := range items {
		if err := out.PrintObj(&items[i], o.IO.Out); err != nil {
			return err
		}
	}
	return nil
}

// printDiff shows what would change.
func (o *Options) printDiff(p *resize.Plan) error {
	for _, object := range objects(p) {
		diff, err := apply.Result{Object: object.After, Before: object.Before, After: object.After}.Diff()
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(o.IO.Out, diff); err != nil {
			return err
		}
	}
	return nil
}

// report prints what has become of the job.
func (o *Options) report(t *target, p *resize.Plan) error {
	_, queued := kueue.QueueOf(&t.job.Meta)
	by := t.job.Meta.Labels[suspension.Label]
	switch {
	case p.Intent.Resume || queued:
	case by != "":
		fmt.Fprintf(o.IO.ErrOut, "note: %s has suspended it, and resumes it itself\n", by)
	default:
		resume := fmt.Sprintf("`gangctl resume %s -n %s`", resize.Named(t.job), t.job.Meta.Namespace)
		fmt.Fprintf(o.IO.ErrOut, "note: it stays suspended: go on with %s\n", o.IO.Commands(resume))
	}
	_, err := fmt.Fprintf(o.IO.Out, "%s resized\n", t.job.Ref())
	return err
}
