package gang

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Identity is which object something is. An owner is of the namespace of what it owns, and the reference to it is written by users: who copies
// the uid of a job of another namespace has nothing of that job.
type Identity struct {
	Namespace string
	UID       types.UID
}

// IdentityOf is that of an object.
func IdentityOf(obj metav1.Object) Identity { return Identity{obj.GetNamespace(), obj.GetUID()} }

// ControllerOf is the identity of an object's controller; ok is false for an object without.
func ControllerOf(obj metav1.Object) (id Identity, ok bool) {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil {
		return Identity{}, false
	}
	return Identity{obj.GetNamespace(), ref.UID}, true
}

// OwnerKind is the kind of what a reference names, with its API group: several groups have a Job.
func OwnerKind(ref *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
}

// Named is the object of a namespace and name in a list; nil if there is none.
func Named[T any, P interface {
	*T
	metav1.Object
}](list []P, namespace, name string) P {
	for _, o := range list {
		if o.GetName() == name && o.GetNamespace() == namespace {
			return o
		}
	}
	return nil
}
