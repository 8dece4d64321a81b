package submit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
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

// mapOthers finds how the cluster serves the kinds of objects.
func mapOthers(mapper meta.RESTMapper, others []*unstructured.Unstructured) ([]*meta.RESTMapping, error) {
	var all []*meta.RESTMapping
	for _, u := range others {
		gvk := u.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		switch {
		case meta.IsNoMatchError(err):
			return nil, failure.Errorf("create %s %s: the cluster does not serve %s of %s", u.GetKind(), u.GetName(), u.GetKind(), u.GetAPIVersion()).
				WithHint("see what it serves with `kubectl api-resources`")
		case err != nil:
			return nil, failure.Errorf("create %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		all = append(all, mapping)
	}
	return all, nil
}

// createOther returns an object that is neither a job nor its gang as it is stored. One that exists and does not differ is left
// as it is: existed is true then.
func (c *creator) createOther(ctx context.Context, mapping *meta.RESTMapping, desired *unstructured.Unstructured, namespace string) (stored *unstructured.Unstructured, existed bool, err error) {
	desired = desired.DeepCopy()
	switch {
	case mapping.Scope.Name() == meta.RESTScopeNameRoot:
		desired.SetNamespace("")
	case desired.GetNamespace() == "":
		desired.SetNamespace(namespace)
	}
	stored, err = c.postAs(ctx, mapping.Resource, desired, c.dryRun)
	if errors.Is(err, context.Canceled) && !c.dryRun {
		return nil, false, failure.WithCode(failure.CodeInterrupted, "interrupted while creating %s: it may exist", named(desired)).
			WithHint("see whether it does with `kubectl get %s`", kubectlArgs(mapping.Resource, desired))
	}
	if !apierrors.IsAlreadyExists(err) {
		return stored, false, err
	}
	found, getErr := c.at(mapping.Resource, desired).Get(ctx, desired.GetName(), metav1.GetOptions{})
	if getErr != nil {
		return nil, false, operation("get", mapping.Resource, desired).Wrap(getErr)
	}
	if path := difference(desired.Object, found.Object, ""); path != "" {
		return nil, false, failure.From(err).WithHint("the one that exists differs in %s: see it with `kubectl get %s -o yaml`, remove it from the file to use it, or choose another name",
			path, kubectlArgs(mapping.Resource, desired))
	}
	return found, true, nil
}

// kubectlArgs name an object for kubectl.
func kubectlArgs(gvr schema.GroupVersionResource, u *unstructured.Unstructured) string {
	args := fmt.Sprintf("%s %s", gvr.GroupResource(), u.GetName())
	if u.GetNamespace() == "" {
		return args
	}
	return "-n " + u.GetNamespace() + " " + args
}

// difference is the path of the first value that is desired and differs from what is live; empty if none does. What is live and
// not desired, such as the defaults of the API server, makes no difference.
func difference(desired, live any, path string) string {
	switch w := desired.(type) {
	case map[string]any:
		t, ok := live.(map[string]any)
		if !ok && len(w) > 0 {
			return path
		}
		return differenceOfMaps(w, t, path)
	case []any:
		t, ok := live.([]any)
		if !ok && len(w) == 0 {
			return ""
		}
		if !ok || len(t) != len(w) {
			return path
		}
		for i := range w {
			if at := difference(w[i], t[i], fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
		return ""
	case nil:
		return ""
	}
	if reflect.DeepEqual(desired, live) || sameQuantity(desired, live) {
		return ""
	}
	return path
}

func differenceOfMaps(desired, live map[string]any, path string) string {
	for _, key := range slices.Sorted(maps.Keys(desired)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		switch {
		case at == "stringData": // of a Secret, which API servers keep in data
			texts, _ := desired[key].(map[string]any)
			data, _ := live["data"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(texts)) {
				if text, _ := texts[name].(string); data[name] != base64.StdEncoding.EncodeToString([]byte(text)) {
					return at + "." + name
				}
			}
			continue
		case desired[key] == nil:
			continue
		}
		if found := difference(desired[key], live[key], at); found != "" {
			return found
		}
	}
	return ""
}

// sameQuantity reports whether two values are one quantity, which API servers write in their own way.
func sameQuantity(a, b any) bool {
	if reflect.TypeOf(b) != reflect.TypeFor[string]() {
		return false
	}
	x, err := resource.ParseQuantity(fmt.Sprint(a))
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(fmt.Sprint(b))
	return err == nil && x.Cmp(y) == 0
}
