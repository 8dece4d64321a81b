package trainjob

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

// writeRoles writes the number of nodes of a TrainJob. What its members request is written to the JobSet that is made of it.
func writeRoles(u *unstructured.Unstructured, roles []gang.Role) {
	for _, role := range roles {
		if role.Name == node {
			_ = unstructured.SetNestedField(u.Object, int64(role.Replicas), "spec", "trainer", "numNodes") // it was decoded: every field above is a map or absent
		}
	}
}
