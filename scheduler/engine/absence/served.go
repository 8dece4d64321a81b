package absence

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Discovery asks an API server what it serves, which everybody may.
func Discovery(client discovery.DiscoveryInterface) Served {
	asker := discovery.ToDiscoveryInterfaceWithContext(client)
	return func(ctx context.Context, resource schema.GroupVersionResource) (bool, error) {
		list, err := asker.ServerResourcesForGroupVersionWithContext(ctx, resource.GroupVersion().String())
		if apierrors.IsNotFound(err) {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("ask for %s: %w", resource.GroupVersion(), err)
		}
		return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }), nil
	}
}
