package native

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// CompositeKind is the kind of PodGroups that have PodGroups as their parts.
func CompositeKind() schema.GroupKind {
	return schema.GroupKind{Group: Group, Kind: "CompositePodGroup"}
}

// Composites is the resource of CompositePodGroups, which is served in v1alpha3 where an administrator switched that on.
func Composites() schema.GroupResource {
	return schema.GroupResource{Group: Group, Resource: "compositepodgroups"}
}

// DecodeComposite reads a CompositePodGroup, without its parts, which name it as their parent.
func DecodeComposite(u *unstructured.Unstructured) (gang.Composite, error) {
	f := gang.Fields{Object: u}
	c := gang.Composite{
		Name: u.GetName(), Parent: f.String("spec", "parentCompositePodGroupName"),
		MinGroups: max(1, f.Int32("spec", "schedulingPolicy", "gang", "minGroupCount")),
	}
	if all := f.List("spec", "schedulingConstraints", "topology"); len(all) > 0 {
		c.Topology, _ = all[0]["key"].(string)
	}
	return c, f.Err
}
