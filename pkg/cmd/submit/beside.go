package submit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// namespacedKind reports whether objects of a kind have a namespace; known is false for a kind that is not Kubernetes' own.
func namespacedKind(kind schema.GroupKind) (namespaced, known bool) {
	clusterWide := map[string][]string{
		"":                          {"Namespace", "Node", "PersistentVolume"},
		"storage.k8s.io":            {"StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "VolumeAttributesClass"},
		"scheduling.k8s.io":         {"PriorityClass"},
		"rbac.authorization.k8s.io": {"ClusterRole", "ClusterRoleBinding"},
		"node.k8s.io":               {"RuntimeClass"},
		"networking.k8s.io":         {"IngressClass"},
		"apps":                      {}, "batch": {}, "autoscaling": {}, "policy": {}, "coordination.k8s.io": {},
	}
	kinds, known := clusterWide[kind.Group]
	return known && !slices.Contains(kinds, kind.Kind), known
}

// besides creates the objects of a file that are neither jobs nor their gangs.
type besides struct {
	*creator
	// resources are what the server serves, by API version; each is asked once.
	resources map[string][]metav1.APIResource
}

// create returns an object as it is stored. One that exists already and says the same is left as it is: existed is true then.
func (b *besides) create(ctx context.Context, wanted *unstructured.Unstructured, namespace string) (stored *unstructured.Unstructured, gvr schema.GroupVersionResource, existed bool, err error) {
	resource, err := b.resource(wanted)
	if err != nil {
		return nil, gvr, false, err
	}
	wanted, gvr = wanted.DeepCopy(), wanted.GroupVersionKind().GroupVersion().WithResource(resource.Name)
	switch {
	case resource.Namespaced && wanted.GetNamespace() == "":
		wanted.SetNamespace(namespace)
	case !resource.Namespaced:
		wanted.SetNamespace("")
	}
	stored, err = b.postAs(ctx, gvr, wanted, b.dryRun)
	if !apierrors.IsAlreadyExists(err) {
		return stored, gvr, false, err
	}
	there, getErr := b.at(gvr, wanted).Get(ctx, wanted.GetName(), metav1.GetOptions{})
	if getErr != nil {
		return nil, gvr, false, operation("get", gvr, wanted).Wrap(getErr)
	}
	if path := difference(wanted.Object, there.Object, ""); path != "" {
		return nil, gvr, false, failure.From(err).WithHint("the one that exists differs in %s: see it with `kubectl get %s%s -o yaml`, remove it from the file to use it, or choose another name",
			path, inNamespace(wanted), resourceArg(gvr, wanted))
	}
	return there, gvr, true, nil
}

// resource finds how a kind is served.
func (b *besides) resource(u *unstructured.Unstructured) (metav1.APIResource, error) {
	version := u.GetAPIVersion()
	if _, asked := b.resources[version]; !asked {
		list, err := b.client.Typed.Discovery().ServerResourcesForGroupVersion(version)
		if err != nil && !apierrors.IsNotFound(err) {
			return metav1.APIResource{}, failure.Op{Verb: "list", Kind: "API resource"}.Wrap(err)
		}
		if b.resources == nil {
			b.resources = map[string][]metav1.APIResource{}
		}
		b.resources[version] = nil
		if err == nil {
			b.resources[version] = list.APIResources
		}
	}
	for _, r := range b.resources[version] {
		if r.Kind == u.GetKind() && !strings.Contains(r.Name, "/") {
			return r, nil
		}
	}
	return metav1.APIResource{}, failure.Errorf("create %s %s: the cluster does not serve %s of %s", u.GetKind(), u.GetName(), u.GetKind(), version).
		WithHint("see what it serves with `kubectl api-resources`")
}

func inNamespace(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return ""
	}
	return "-n " + u.GetNamespace() + " "
}

func resourceArg(gvr schema.GroupVersionResource, u *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s", gvr.GroupResource(), u.GetName())
}
