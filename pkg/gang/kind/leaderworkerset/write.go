package leaderworkerset

import (
	"cmp"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang"
)

// writeRoles writes the roles of one replica into a LeaderWorkerSet: all replicas are alike. A leader that is alone and has no template of its own is
// made of that of the workers which it does not have.
func writeRoles(u *unstructured.Unstructured, roles []gang.Role) {
	for _, role := range roles {
		if role.TemplateOf == "" || len(roles) == 1 {
			writeTemplate(u, role)
		}
		if role.Name == Worker {
			_ = unstructured.SetNestedField(u.Object, int64(role.Replicas)+1, "spec", "leaderWorkerTemplate", "size") // it was decoded: every field above is a map or absent
		}
	}
}

// writeTemplate writes a template without what the controller adds to pods.
func writeTemplate(u *unstructured.Unstructured, role gang.Role) {
	pods := role.Template.DeepCopy()
	added := func(key, _ string) bool { return strings.HasPrefix(key, labelPrefix) }
	maps.DeleteFunc(pods.Labels, added)
	maps.DeleteFunc(pods.Annotations, added)
	if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pods); err == nil {
		_ = unstructured.SetNestedField(u.Object, content, template(cmp.Or(role.TemplateOf, role.Name))...)
	}
}
