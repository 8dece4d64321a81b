package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
)

// precious are the kinds that users put into a namespace and would miss, whatever discovery returns.
var precious = []apply.Kind{
	{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod"},
	{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap"},
	{Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret"},
	{Resource: schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, Kind: "PersistentVolumeClaim"},
	{Resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, Kind: "Service"},
	{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment"},
	{Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}, Kind: "StatefulSet"},
	{Resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, Kind: "Job"},
}

// derived are the kinds that the cluster itself writes about others: no user misses them.
var derived = []schema.GroupResource{{Resource: "events"}, {Group: "events.k8s.io", Resource: "events"}, {Group: "coordination.k8s.io", Resource: "leases"},
	{Resource: "endpoints"}, {Group: "discovery.k8s.io", Resource: "endpointslices"}}

// keepable are the kinds of objects that a namespace can hold and people would miss: those of Kubernetes, and whatever else is served. A
// group whose server is away has none that could be listed.
func keepable(client *kube.Client) ([]apply.Kind, error) {
	all := slices.Clone(precious)
	lists, err := client.Typed.Discovery().ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, failure.Errorf("list the kinds of the cluster: %w", err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			at := version.WithResource(r.Name)
			known := slices.Contains(derived, at.GroupResource()) || slices.ContainsFunc(all, func(k apply.Kind) bool { return k.Resource.GroupResource() == at.GroupResource() })
			if r.Namespaced && !known && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") {
				all = append(all, apply.Kind{Resource: at, Kind: r.Kind})
			}
		}
	}
	return all, nil
}

// spareNamespaces returns those of the namespaces to delete that hold things which gangctl did not make, and reports which.
func (o *Options) spareNamespaces(ctx context.Context, client *kube.Client, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var spared []*unstructured.Unstructured
	for _, namespace := range objects {
		if namespace.GetKind() != "Namespace" {
			continue
		}
		foreign, err := inside(ctx, client, namespace.GetName())
		if err != nil {
			return nil, err
		}
		if len(foreign) == 0 {
			continue
		}
		spared = append(spared, namespace)
		fmt.Fprintf(o.IO.ErrOut, "note: %s stays: it holds what gangctl did not make: %s\n", apply.Describe(namespace), strings.Join(foreign, ", "))
	}
	return spared, nil
}

// inside names what a namespace holds besides our own objects and those that every namespace gets.
func inside(ctx context.Context, client *kube.Client, namespace string) ([]string, error) {
	var foreign []string
	kinds, err := keepable(client)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		options := metav1.ListOptions{LabelSelector: install.LabelPartOf + "!=" + install.PartOf}
		pages, err := paging.All(ctx, options, client.Dynamic.Resource(kind.Resource).Namespace(namespace).List)
		if err != nil {
			return nil, failure.Op{Verb: "list", Resource: kind.Resource, Kind: kind.Kind, Namespace: namespace}.Wrap(err)
		}
		count := 0
		for _, page := range pages {
			for i := range page.Items {
				name := kind.Kind + " " + page.Items[i].GetName()
				if name == "ConfigMap kube-root-ca.crt" || name == "ServiceAccount default" {
					continue
				}
				if count++; count <= shown {
					foreign = append(foreign, name)
				}
			}
		}
		if count > shown {
			foreign = append(foreign, fmt.Sprintf("%d more of kind %s", count-shown, kind.Kind))
		}
	}
	return foreign, nil
}

func without(objects, spared []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return slices.Contains(spared, o) })
}

// because reports that an object was left on purpose.
func because(object *unstructured.Unstructured, spared []*unstructured.Unstructured) string {
	for _, s := range spared {
		if s.GetUID() == object.GetUID() {
			return ", because it holds what gangctl did not make"
		}
	}
	return ""
}
