package collect

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/dialect/native"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
)

// scope is where a kind is read.
type scope int

const (
	cluster    scope = iota // it has no namespace
	everywhere              // in all namespaces
	own                     // in the job's namespace only
)

// custom are the kinds beyond the built-in ones that are served, each in one version: the newest that the server prefers.
func custom(served []metav1.APIResource) []resource {
	requiredKinds := map[schema.GroupKind]bool{}
	for _, r := range kinds.Readers() {
		requiredKinds[r.GroupKind] = r.Group != "batch"
	}
	for _, kind := range view.AuxiliaryKinds() {
		requiredKinds[kind] = true
	}
	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		requiredKinds[schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: kind}] = true
	}
	var all []resource
	seen := map[schema.GroupKind]bool{}
	for _, r := range served {
		kind := schema.GroupKind{Group: r.Group, Kind: r.Kind}
		if !requiredKinds[kind] || seen[kind] || !slices.Contains(r.Verbs, "list") {
			continue
		}
		seen[kind] = true
		all = append(all, resource{gvr: schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name}, kind: r.Kind,
			namespaced: r.Namespaced, accept: runtime.ContentTypeJSON, decode: untyped(r.Version, kind)})
	}
	return all
}

// crdGroups are API groups under k8s.io that are not built in.
var crdGroups = []string{"scheduling.x-k8s.io", "scheduling.sigs.k8s.io", "scheduling.incubator.k8s.io", kueue.Group}

// declaresGangs reports whether gangs are declared by objects of a kind. Kubernetes' own are built in, and not served everywhere.
func declaresGangs(kind schema.GroupKind) bool {
	_, ok := dialect.ByKind(kind)
	return ok || kind == native.CompositeKind()
}
