package uninstall

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	installer "github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/install"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
)

func (o *Options) run(ctx context.Context) error {
	client, err := o.Client()
	if err != nil {
		return err
	}
	found, err := install.Find(ctx, client)
	if err != nil {
		return err
	}
	found.Warn(o.IO.ErrOut)
	gone, definitions := part(found.Objects)
	if len(gone) == 0 && (len(definitions) == 0 || !o.DeleteCRDs) {
		fmt.Fprintln(o.IO.ErrOut, "nothing of gangctl is installed on this cluster"+o.IO.Commands(stay(definitions)))
		return nil
	}
	if err := refuseInUse(ctx, client, found.Names()); err != nil {
		return err
	}
	kept, err := o.spareNamespaces(ctx, client, gone)
	if err != nil {
		return err
	}
	own, err := written(ctx, client, found.Home(), without(gone, kept))
	if err != nil {
		return err
	}
	gone = append(gone, own...)
	if o.DeleteCRDs {
		if err := o.confirmAll(ctx, client, definitions); err != nil {
			return err
		}
		gone = append(gone, definitions...)
	}
	return o.delete(ctx, client, found, gone, kept, definitions)
}

// delete deletes the objects, reports each as gone, and proves that no other is left.
func (o *Options) delete(ctx context.Context, client *kube.Client, found *install.Installation, gone []*unstructured.Unstructured, kept []spared,
	definitions []*unstructured.Unstructured,
) error {
	suffix := ""
	dry := o.DryRun == dryRunServer
	if dry {
		suffix = " (server dry run)"
	}
	a := &apply.Applier{Client: client.Dynamic, DryRun: dry, Report: func(r apply.Result) {
		fmt.Fprintf(o.IO.Out, "%s %s%s\n", apply.Name(r.Object), r.Action, suffix)
	}}
	deleted := without(gone, kept)
	err := a.Delete(ctx, deleted)
	if dry {
		return err
	}
	if err == nil {
		err = a.WaitGone(ctx, deleted, o.Timeout)
	}
	if err != nil {
		return err
	}
	left, err := o.remains(ctx, client, found, deleted)
	if err != nil {
		return err
	}
	var errs []error
	for _, object := range left {
		if isDefinition(object) && !o.DeleteCRDs {
			continue
		}
		errs = append(errs, failure.Errorf("%s is still there%s", apply.Describe(object), because(object, kept)).
			WithHint("run 'gangctl uninstall' again when what keeps it is gone"))
	}
	if err := failure.All(errs...); err != nil {
		return err
	}
	if !o.DeleteCRDs && len(definitions) > 0 {
		fmt.Fprintf(o.IO.ErrOut, "%s and its PodGroups stay; to delete them: %s\n", apply.Describe(definitions[0]), o.IO.Commands("gangctl uninstall --delete-crds"))
	}
	fmt.Fprintf(o.IO.ErrOut, "%s deleted; nothing labelled %s is left\n", phrase.Count(len(deleted), "object"), installer.Selector(installer.SchedulerInstance))
	return nil
}

// remains looks for everything of the scheduler with the labels, that which controllers derive included.
func (o *Options) remains(ctx context.Context, client *kube.Client, found *install.Installation, deleted []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	selector := installer.Selector(installer.SchedulerInstance)
	derived, err := apply.Find(ctx, client.Dynamic, selector, apply.DerivedKinds())
	if err != nil {
		return nil, err
	}
	derived, _ = found.Part(derived)
	a := &apply.Applier{Client: client.Dynamic}
	if err := a.WaitGone(ctx, derived, o.Timeout); err != nil {
		return nil, err
	}
	late, err := written(ctx, client, found.Home(), deleted) // while it was ending
	if err != nil {
		return nil, err
	}
	if err := a.Delete(ctx, late); err != nil {
		return nil, err
	}
	left, err := apply.Find(ctx, client.Dynamic, selector, append(apply.ShippedKinds(), apply.DerivedKinds()...))
	left, _ = found.Part(left)
	return left, err
}

// written are the objects that the scheduler writes itself into a namespace that stays: the key with which it signs answers. They have no
// label of the installation; what another user has called like them has none of gangctl.
func written(ctx context.Context, client *kube.Client, home string, deleted []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	goes := func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" && o.GetName() == home }
	if home == "" || slices.ContainsFunc(deleted, goes) {
		return nil, nil
	}
	var all []*unstructured.Unstructured
	for _, kind := range []string{"Secret", "ConfigMap"} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		object.SetNamespace(home)
		object.SetName(published.KeyName)
		there, err := apply.Get(ctx, client.Dynamic, object)
		if err != nil {
			return nil, err
		}
		if there != nil && installer.Of(there, installer.SchedulerInstance) {
			all = append(all, there)
		}
	}
	return all, nil
}

// part parts definitions, which are deleted on request only, from the rest.
func part(objects []*unstructured.Unstructured) (rest, definitions []*unstructured.Unstructured) {
	for _, object := range objects {
		if isDefinition(object) {
			definitions = append(definitions, object)
		} else {
			rest = append(rest, object)
		}
	}
	return rest, definitions
}

func isDefinition(object *unstructured.Unstructured) bool {
	return object.GetKind() == "CustomResourceDefinition"
}

// stay is the message's part on definitions that stay.
func stay(definitions []*unstructured.Unstructured) string {
	if len(definitions) == 0 {
		return ""
	}
	return fmt.Sprintf(", except for %s; to delete it: gangctl uninstall --delete-crds", apply.Describe(definitions[0]))
}
