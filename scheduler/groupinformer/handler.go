package groupinformer

import (
	"context"
	"fmt"
	"slices"

	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	"github.com/gangctl/gangctl/pkg/gang/dialect/pdb"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/gangcache"
)

// GangHandler brings the objects of every dialect into the cache of gangs.
type GangHandler struct {
	cache   *gangcache.Cache
	apply   func(func() gangcache.Change)
	readers map[schema.GroupResource][]kindReader
}

// kindReader is a dialect that reads a resource, with the kind of its objects.
type kindReader struct {
	gang.Reader
	kind schema.GroupKind
}

// NewGangHandler returns a handler. Every change of the cache is made through apply, which shows the engine what follows from it.
func NewGangHandler(cache *gangcache.Cache, apply func(func() gangcache.Change)) *GangHandler {
	h := &GangHandler{cache: cache, apply: apply, readers: map[schema.GroupResource][]kindReader{}}
	for _, reader := range gangcache.Readers() {
		for _, kind := range reader.Kinds {
			resource := schema.GroupResource{Group: kind.Group, Resource: kind.Resource}
			h.readers[resource] = append(h.readers[resource], kindReader{reader, kind.GroupKind})
		}
	}
	return h
}

// CustomResources are the resources of group objects that CustomResourceDefinitions
// serve.
func CustomResources() []schema.GroupResource {
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

// NativePodGroup is Kubernetes' own PodGroup, in the newest version that we know.
func NativePodGroup(client discovery.DiscoveryInterface) BuiltIn {
	kind := native.Reader().Kinds[0]
	return BuiltIn{
		GroupResource: schema.GroupResource{Group: kind.Group, Resource: kind.Resource},
		Version: func(context.Context) (string, error) {
			for _, version := range native.Versions() {
				list, err := client.ServerResourcesForGroupVersion(schema.GroupVersion{Group: kind.Group, Version: version}.String())
				if apierrors.IsNotFound(err) {
					continue
				} else if err != nil {
					return "", fmt.Errorf("discover %s/%s: %w", kind.Group, version, err)
				}
				if slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource }) {
					return version, nil
				}
			}
			return "", nil
		},
	}
}

// SetObject implements Handler.
func (h *GangHandler) SetObject(resource schema.GroupVersionResource, u *unstructured.Unstructured) {
	for _, reader := range h.readers[resource.GroupResource()] {
		d, err := reader.Decode(u)
		key := gang.Key{Dialect: reader.Dialect, Namespace: u.GetNamespace(), Name: u.GetName()}
		object := gangcache.Object{Declaration: d, GroupKind: reader.kind, Resource: resource, Unreadable: err}
		h.apply(func() gangcache.Change { return h.cache.SetObject(key, object) })
	}
}

// DeleteObject implements Handler.
func (h *GangHandler) DeleteObject(resource schema.GroupVersionResource, namespace, name string) {
	for _, reader := range h.readers[resource.GroupResource()] {
		key := gang.Key{Dialect: reader.Dialect, Namespace: namespace, Name: name}
		h.apply(func() gangcache.Change { return h.cache.DeleteObject(key, reader.kind) })
	}
}

// Reset implements Handler.
func (h *GangHandler) Reset(resource schema.GroupVersionResource) {
	for _, reader := range h.readers[resource.GroupResource()] {
		h.apply(func() gangcache.Change { return h.cache.DeleteObjects(reader.kind) })
	}
}

// Problem implements Handler.
func (h *GangHandler) Problem(resource schema.GroupVersionResource, err error) {
	text := ""
	if err != nil {
		text = fmt.Sprintf("list %s: %v", resource.GroupResource(), err)
	}
	for _, reader := range h.readers[resource.GroupResource()] {
		h.cache.SetProblem(reader.kind, text)
	}
}

// Watch follows what the engine's own informers know: budgets that make gangs, the
// priorities that group objects name, and the claims without which a member does
// not start. A panic over a budget or a claim is counted, and that is skipped.
func (h *GangHandler) Watch(factory informers.SharedInformerFactory, panics *engine.Panics) (synced []cache.InformerSynced, err error) {
	budgets, err := panics.Informer(factory.Policy().V1().PodDisruptionBudgets().Informer()).AddEventHandler(cache.ResourceEventHandlerFuncs{
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
	claims, err := panics.Informer(factory.Resource().V1().ResourceClaims().Informer()).AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    h.claimChanged,
		UpdateFunc: h.claimUpdated,
		DeleteFunc: h.claimChanged,
	})
	if err != nil {
		return nil, fmt.Errorf("watch ResourceClaims: %w", err)
	}
	return []cache.InformerSynced{budgets.HasSynced, classes.HasSynced, claims.HasSynced}, nil
}

// claimChanged has the pods looked at for which a claim is there, or is no more.
func (h *GangHandler) claimChanged(obj any) {
	if claim, ok := engine.EventObject[*resourcev1.ResourceClaim](obj); ok {
		h.apply(func() gangcache.Change { return h.cache.ClaimsChanged(claim.Namespace) })
	}
}

// claimUpdated is claimChanged where a claim is another one, another pod's, or begins to be deleted. What is allocated for it changes more often.
func (h *GangHandler) claimUpdated(old, obj any) {
	before, ok := old.(*resourcev1.ResourceClaim)
	now, is := obj.(*resourcev1.ResourceClaim)
	if ok && is && before.UID == now.UID && (before.DeletionTimestamp == nil) == (now.DeletionTimestamp == nil) && equality.Semantic.DeepEqual(before.OwnerReferences, now.OwnerReferences) {
		return
	}
	h.claimChanged(obj)
}

func (h *GangHandler) setBudget(obj any) {
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
		return h.cache.SetBudget(gangcache.Object{Declaration: d, GroupKind: d.Kind.GroupKind()})
	})
}

func (h *GangHandler) deleteBudget(obj any) {
	if budget, ok := engine.EventObject[*policyv1.PodDisruptionBudget](obj); ok {
		key := gang.Key{Dialect: gang.PDB, Namespace: budget.Namespace, Name: budget.Name}
		kind := schema.GroupKind{Group: policyv1.GroupName, Kind: "PodDisruptionBudget"}
		h.apply(func() gangcache.Change { return h.cache.DeleteBudget(key, kind) })
	}
}

func (h *GangHandler) setClass(obj any, exists bool) {
	class, ok := engine.EventObject[*schedulingv1.PriorityClass](obj)
	if !ok {
		return
	}
	terms := gang.NewTerms(class.Value, ptr.Deref(class.PreemptionPolicy, ""))
	h.apply(func() gangcache.Change { return h.cache.SetClass(class.Name, terms, exists) })
}

// Objects are the group objects that the cache of gangs goes by.
type Objects struct {
	Cache    *gangcache.Cache
	Informer *Informer
}

// Get returns the object of a gang; u is nil where only the object's identity is known.
func (o Objects) Get(key gang.Key) (object gangcache.Object, u *unstructured.Unstructured, ok bool) {
	if object, ok = o.Cache.Object(key); !ok {
		return gangcache.Object{}, nil, false
	}
	u, _ = o.Informer.Get(object.Resource, key.Namespace, key.Name)
	return object, u, true
}
