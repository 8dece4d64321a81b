package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// object names an object of a cluster.
type object struct {
	schema.GroupVersionResource
	namespace, name string
}

func (o object) String() string {
	return strings.TrimPrefix(o.namespace+"/", "/") + o.GroupResource().String() + "/" + o.name
}

// version distinguishes an object from an earlier one of the same name.
type version struct{ uid, resourceVersion string }

// inventory is everything that tests may see of a cluster.
type inventory struct{ objects map[object]version }

// untouched are namespaces in which the cluster keeps house: controllers make objects there when they first need them.
var untouched = []string{metav1.NamespaceSystem, metav1.NamespacePublic}

// derived are resources that the API server makes and removes along with others.
var derived = []schema.GroupResource{
	{Group: "apiregistration.k8s.io", Resource: "apiservices"},
	{Group: "networking.k8s.io", Resource: "ipaddresses"},
	{Group: "networking.k8s.io", Resource: "servicecidrs"},
}

// takeInventory lists what is in a cluster.
func takeInventory(ctx context.Context, config *rest.Config) (*inventory, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	resources, err := listable(config)
	if err != nil {
		return nil, err
	}
	all := &inventory{objects: map[object]version{}}
	for _, resource := range resources {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) { // its definition went meanwhile
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
		}
		for _, item := range list.Items {
			if slices.Contains(untouched, item.GetNamespace()) {
				continue
			}
			key := object{resource, item.GetNamespace(), item.GetName()}
			all.objects[key] = version{string(item.GetUID()), item.GetResourceVersion()}
		}
	}
	return all, nil
}

// listable returns the resources whose objects can be listed and deleted, each in the version that the server prefers.
func listable(config *rest.Config) ([]schema.GroupVersionResource, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	lists, err := client.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	var all []schema.GroupVersionResource
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("list resources: %w", err)
		}
		for _, r := range list.APIResources {
			resource := gv.WithResource(r.Name)
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && !slices.Contains(derived, resource.GroupResource()) {
				all = append(all, resource)
			}
		}
	}
	return all, nil
}

// restore deletes what is in the cluster and not in the inventory, and waits until it is gone. It returns an error if that takes
// too long, and if something of the inventory is no longer what it was.
func (i *inventory) restore(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	for {
		now, err := takeInventory(ctx, config)
		if err != nil {
			return err
		}
		surplus := now.without(i)
		if len(surplus) == 0 {
			return i.requireUnchanged(now)
		}
		for _, o := range surplus {
			// Pods do not get their termination grace period.
			none, background := int64(0), metav1.DeletePropagationBackground
			options := metav1.DeleteOptions{GracePeriodSeconds: &none, PropagationPolicy: &background}
			err := client.Resource(o.GroupVersionResource).Namespace(o.namespace).Delete(ctx, o.name, options)
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return fmt.Errorf("delete %s: %w", o, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s and others are still there: %w", surplus[0], ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// without returns the objects that another inventory lacks: jobs before their pods, and nodes last, so that pods end by themselves.
func (i *inventory) without(other *inventory) []object {
	var surplus []object
	namespaces := map[string]bool{}
	for o := range i.objects {
		if _, ok := other.objects[o]; ok {
			continue
		}
		surplus = append(surplus, o)
		if o.Resource == "namespaces" {
			namespaces[o.name] = true
		}
	}
	surplus = slices.DeleteFunc(surplus, func(o object) bool { return namespaces[o.namespace] }) // they go with it
	rank := func(o object) int {
		return slices.Index([]string{"pods", "customresourcedefinitions", "nodes"}, o.Resource)
	}
	slices.SortFunc(surplus, func(a, b object) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a.String(), b.String())
	})
	return surplus
}

// requireUnchanged returns an error for an object of the inventory that is gone, or replaced, or changed if it is about rights.
func (i *inventory) requireUnchanged(now *inventory) error {
	var errs []error
	for o, was := range i.objects {
		is, ok := now.objects[o]
		switch {
		case o.Resource == "leases" || o.Resource == "events":
		case !ok:
			errs = append(errs, fmt.Errorf("%s is gone", o))
		case is.uid != was.uid:
			errs = append(errs, fmt.Errorf("%s is another one", o))
		case o.Group == "rbac.authorization.k8s.io" && is.resourceVersion != was.resourceVersion:
			errs = append(errs, fmt.Errorf("%s was changed", o))
		}
	}
	return errors.Join(errs...)
}
