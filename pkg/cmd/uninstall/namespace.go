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

// keepable are the kinds of objects that a namespace can hold and people would miss: those of Kubernetes, and whatever else is served.
// unknown are the API groups whose kinds cannot be listed, such as those of an aggregated server that is away, each with the reason.
func keepable(client *kube.Client) (all []apply.Kind, unknown []string, err error) {
	all = slices.Clone(precious)
	lists, err := client.Typed.Discovery().ServerPreferredResources()
	if failed, ok := discovery.GroupDiscoveryFailedErrorGroups(err); ok {
		for version, reason := range failed {
			unknown = append(unknown, fmt.Sprintf("the kinds of %s, which cannot be listed (%v)", version, reason))
		}
		slices.Sort(unknown)
	} else if err != nil {
		return nil, nil, failure.Errorf("list the kinds of the cluster: %w", err)
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
	return all, unknown, nil
}

// spared is a namespace that is not deleted.
type spared struct {
	namespace *unstructured.Unstructured
	reason    string
}

// spareNamespaces returns those of the namespaces to delete that hold things which are not the scheduler's, or may hold some, and reports
// which.
func (o *Options) spareNamespaces(ctx context.Context, client *kube.Client, objects []*unstructured.Unstructured) ([]spared, error) {
	var all []spared
	for _, namespace := range objects {
		if namespace.GetKind() != "Namespace" {
			continue
		}
		kinds, unknown, err := keepable(client)
		if err != nil {
			return nil, err
		}
		foreign, err := inside(ctx, client, kinds, namespace.GetName())
		if err != nil {
			return nil, err
		}
		if len(foreign) == 0 && len(unknown) == 0 {
			continue
		}
		s, what := spared{namespace, "it holds what is not the scheduler's"}, foreign
		if len(foreign) == 0 {
			s.reason, what = "it may hold what is not the scheduler's", unknown
		}
		all = append(all, s)
		fmt.Fprintf(o.IO.ErrOut, "note: %s stays: %s: %s\n", apply.Describe(namespace), s.reason, strings.Join(what, ", "))
	}
	return all, nil
}

// inside names what a namespace holds of some kinds besides the scheduler's objects and those that every namespace gets. The training operator
// counts, also where gangctl installed it: its webhook would stay, and refuse every job.
func inside(ctx context.Context, client *kube.Client, kinds []apply.Kind, namespace string) ([]string, error) {
	var foreign []string
	for _, kind := range kinds {
		pages, err := paging.All(ctx, metav1.ListOptions{}, client.Dynamic.Resource(kind.Resource).Namespace(namespace).List)
		if err != nil {
			return nil, failure.Op{Verb: "list", Resource: kind.Resource, Kind: kind.Kind, Namespace: namespace}.Wrap(err)
		}
		count := 0
		for _, page := range pages {
			for i := range page.Items {
				name := kind.Kind + " " + page.Items[i].GetName()
				if install.Of(&page.Items[i], install.SchedulerInstance) || name == "ConfigMap kube-root-ca.crt" || name == "ServiceAccount default" {
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

func without(objects []*unstructured.Unstructured, kept []spared) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return slices.ContainsFunc(kept, func(s spared) bool { return s.namespace == o })
	})
}

// because reports that an object was left on purpose.
func because(object *unstructured.Unstructured, kept []spared) string {
	for _, s := range kept {
		if s.namespace.GetUID() == object.GetUID() {
			return ", because " + s.reason
		}
	}
	return ""
}
