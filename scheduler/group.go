package scheduler

import (
	"context"
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/dialect/pdb"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/groupinformer"
)

// groupHandler brings the objects of every dialect into the roster.
type groupHandler struct {
	roster *gangcache.Cache
	apply  func(func() gangcache.Change)
}

// custom are the resources of group objects that CustomResourceDefinitions
// serve.
func custom() []schema.GroupResource {
	var resources []schema.GroupResource
	for _, reader := range gangcache.Readers() {
		for _, kind := range reader.Kinds {
			resource := schema.GroupResource{Group: kind.Group, Resource: kind.Resource}
			if kind.Group != native.Group && !slices.Contains(resources, resource) {
				resources = append(resources, resource)
			}
		}
	}
	return resources
}

// builtIn is Kubernetes' own PodGroup, in the newest version that we know.
func builtIn(client discovery.DiscoveryInterface) groupinformer.BuiltIn {
	kind := native.Reader().Kinds[0]
	return groupinformer.BuiltIn{
		GroupResource: schema.GroupResource{Group: kind.Group, Resource: kind.Resource},
		Version: func(context.Context) (string, error) {
			for _, version := range native.Versions() {
				list, err := client.ServerResourcesForGroupVersion(schema.GroupVersion{Group: kind.Group, Version: version}.String())
				if apierrors.IsNotFound(err) {
					continue
				} else if err != nil {
					return "", fmt.Errorf("ask for %s/%s: %w", kind.Group, version, err)
				}
				if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource }) {
					return version, nil
				}
			}
			return "", nil
		},
	}
}

// readersOf returns the dialects that read a resource, with the kind of its
// objects. Some share one.
func readersOf(resource schema.GroupVersionResource, each func(gang.Reader, schema.GroupKind)) {
	for _, reader := range gangcache.Readers() {
		for _, kind := range reader.Kinds {
			if kind.Group == resource.Group && kind.Resource == resource.Resource {
				each(reader, kind.GroupKind)
			}
		}
	}
}

// SetObject implements groupinformer.Handler.
func (h *groupHandler) SetObject(resource schema.GroupVersionResource, u *unstructured.Unstructured) {
	readersOf(resource, func(reader gang.Reader, kind schema.GroupKind) {
		d, err := reader.Decode(u)
		key := gang.Key{Dialect: reader.Dialect, Namespace: u.GetNamespace(), Name: u.GetName()}
		object := gangcache.Object{Declaration: d, GroupKind: kind, Resource: resource, Unreadable: err}
		h.apply(func() gangcache.Change { return h.roster.SetObject(key, object) })
	})
}

// DeleteObject implements groupinformer.Handler.
func (h *groupHandler) DeleteObject(resource schema.GroupVersionResource, namespace, name string) {
	readersOf(resource, func(reader gang.Reader, kind schema.GroupKind) {
		key := gang.Key{Dialect: reader.Dialect, Namespace: namespace, Name: name}
		h.apply(func() gangcache.Change { return h.roster.DeleteObject(key, kind) })
	})
}

// Reset implements groupinformer.Handler.
func (h *groupHandler) Reset(resource schema.GroupVersionResource) {
	readersOf(resource, func(_ gang.Reader, kind schema.GroupKind) {
		h.apply(func() gangcache.Change { return h.roster.DeleteObjects(kind) })
	})
}

// Problem implements groupinformer.Handler.
func (h *groupHandler) Problem(resource schema.GroupVersionResource, err error) {
	text := ""
	if err != nil {
		text = fmt.Sprintf("list %s: %v", resource.GroupResource(), err)
	}
	readersOf(resource, func(_ gang.Reader, kind schema.GroupKind) { h.roster.SetProblem(kind, text) })
}

// watch follows what the engine's own informers know: budgets that make gangs,
// and the priorities that group objects name.
func (h *groupHandler) watch(factory informers.SharedInformerFactory) (synced []cache.InformerSynced, err error) {
	budgets, err := factory.Policy().V1().PodDisruptionBudgets().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    h.setBudget,
		UpdateFunc: func(_, obj any) { h.setBudget(obj) },
		DeleteFunc: h.deleteBudget,
	})
	if err != nil {
		return nil, fmt.Errorf("watch PodDisruptionBudgets: %w", err)
	}
	classes, err := factory.Scheduling().V1().PriorityClasses().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { h.setClass(obj, true) },
		UpdateFunc: func(_, obj any) { h.setClass(obj, true) },
		DeleteFunc: func(obj any) { h.setClass(obj, false) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch PriorityClasses: %w", err)
	}
	return []cache.InformerSynced{budgets.HasSynced, classes.HasSynced}, nil
}

func (h *groupHandler) setBudget(obj any) {
	budget, ok := obj.(*policyv1.PodDisruptionBudget)
	if !ok {
		return
	}
	d, ok := pdb.Declare(budget)
	if !ok {
		h.deleteBudget(obj)
		return
	}
	h.apply(func() gangcache.Change {
		return h.roster.SetBudget(gangcache.Object{Declaration: d, GroupKind: d.Kind.GroupKind()})
	})
}

func (h *groupHandler) deleteBudget(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if budget, ok := obj.(*policyv1.PodDisruptionBudget); ok {
		key := gang.Key{Dialect: gang.PDB, Namespace: budget.Namespace, Name: budget.Name}
		kind := schema.GroupKind{Group: policyv1.GroupName, Kind: "PodDisruptionBudget"}
		h.apply(func() gangcache.Change { return h.roster.DeleteBudget(key, kind) })
	}
}

func (h *groupHandler) setClass(obj any, exists bool) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	class, ok := obj.(*schedulingv1.PriorityClass)
	if !ok {
		return
	}
	terms := gangcache.Terms{Priority: class.Value}
	if class.PreemptionPolicy != nil {
		terms.Policy = *class.PreemptionPolicy
	}
	h.apply(func() gangcache.Change { return h.roster.SetClass(class.Name, terms, exists) })
}

// objects are the group objects as the status of gangs is written to them.
type objects struct {
	roster *gangcache.Cache
	feed   *groupinformer.Informer
}

// Get implements status.Objects.
func (o objects) Get(key gang.Key) (gangcache.Object, *unstructured.Unstructured, bool) {
	object, ok := o.roster.Object(key)
	if !ok {
		return gangcache.Object{}, nil, false
	}
	u, _ := o.feed.Get(object.Resource, key.Namespace, key.Name)
	return object, u, true
}
