package render

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// writerOf finds the writer of a dialect.
func writerOf(d gang.Dialect) (gang.Writer, error) {
	w, ok := dialect.WriterOf(d)
	if !ok {
		return w, fmt.Errorf("a gang cannot be declared in dialect %q", d)
	}
	return w, nil
}

// declaration is the gang of a spec whose roles have their pods. It is named like the job: that is what an operator with gang
// scheduling on expects, and what people look for.
func declaration(s Spec, roles []gang.Role) gang.Declaration {
	return gang.Declaration{
		Key:       gang.Key{Dialect: s.Gang.Dialect, Namespace: s.Namespace, Name: s.Name},
		MinMember: s.Gang.MinAvailable, MinResources: gangResources(roles, s.Gang.MinAvailable),
		Queue: s.Gang.Queue, PriorityClass: s.Pod.PriorityClass, TopologyKey: s.Gang.TopologyKey,
	}
}

// groupObject is the gang's object, with the labels of the job; nil in a dialect that has none.
func groupObject(w gang.Writer, d gang.Declaration, s Spec) *unstructured.Unstructured {
	if w.Object == nil {
		return nil
	}
	version := s.Gang.Version
	if version.Empty() {
		version = w.Versions[0]
	}
	u := w.Object(d, version)
	if len(s.Labels) > 0 {
		u.SetLabels(s.Labels)
	}
	return u
}

// Own makes a stored job the owner of an object, so that deleting the job deletes both. It is not the controller, which is
// whoever creates the job's members. blockOwnerDeletion is false because setting it to true needs the right to update
// finalizers of jobs, which a user rarely has.
func Own(object *unstructured.Unstructured, job *unstructured.Unstructured) {
	block := false
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: job.GetAPIVersion(), Kind: job.GetKind(), Name: job.GetName(), UID: job.GetUID(), BlockOwnerDeletion: &block,
	}})
}
