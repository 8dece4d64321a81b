package uninstall

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	installer "github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

// confirmAll has the user type the name of each definition that would be deleted, after reporting how many objects go with it.
func (o *Options) confirmAll(ctx context.Context, client *kube.Client, definitions []*unstructured.Unstructured) error {
	if len(definitions) == 0 {
		return o.foreign(ctx, client)
	}
	for _, definition := range definitions {
		if err := o.confirm(ctx, client, definition); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) confirm(ctx context.Context, client *kube.Client, definition *unstructured.Unstructured) error {
	name := definition.GetName()
	if o.Confirm == name || o.DryRun == dryRunServer {
		return nil
	}
	if o.Confirm != "" {
		return failure.Usagef("--confirm %q: the definition that would be deleted is %s", o.Confirm, name)
	}
	count, err := instances(ctx, client, definition)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("deleting %s deletes %s in all namespaces", apply.Describe(definition), count)
	if !o.Prompter.Available() {
		return failure.Errorf("%s; cannot prompt: stdin and stderr must be terminals", what).WithHint("to confirm: gangctl uninstall --delete-crds --confirm %s", name)
	}
	typed, err := o.Prompter.Input(what + "; type its name to go on:")
	if err != nil {
		return err
	}
	if typed != name {
		return failure.Errorf("%q is not %s: nothing was deleted", typed, name)
	}
	return nil
}

// instances is how many objects of a definition there are. What a server reports as remaining after a page is an estimate, and may be missing.
func instances(ctx context.Context, client *kube.Client, definition *unstructured.Unstructured) (string, error) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	resource, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	version := ""
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["served"] == true {
			version, _, _ = unstructured.NestedString(v, "name")
			break
		}
	}
	gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	count := 0
	err := paging.Each(ctx, metav1.ListOptions{}, client.Dynamic.Resource(gvr).List, func() { count = 0 }, func(page *unstructured.UnstructuredList) { count += len(page.Items) })
	if err != nil {
		return "", failure.Op{Verb: "list", Resource: gvr, Kind: kind}.Wrap(err)
	}
	return phrase.Count(count, kind), nil
}

// foreign names whose definition it is that --delete-crds does not find among ours.
func (o *Options) foreign(ctx context.Context, client *kube.Client) error {
	objects, err := installer.Decode(installer.PodGroupCRD())
	if err != nil {
		return err
	}
	for _, object := range objects {
		there, err := apply.Get(ctx, client.Dynamic, object)
		if err != nil {
			return err
		}
		if there != nil {
			fmt.Fprintf(o.IO.ErrOut, "note: %s was made by %s, not by gangctl: it stays\n", apply.Describe(there), apply.Owner(there))
		}
	}
	return nil
}
