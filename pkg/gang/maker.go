package gang

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Maker is what makes the pods of a gang that no job owns: an object of a kind that is no job, such as a StatefulSet.
type Maker struct {
	// Kind and Name are those of the object that users know: the Deployment of a ReplicaSet.
	Kind schema.GroupKind
	Name string
	// Controller is the object that makes the pods for it, or the same object.
	Controller MakerPart
	// Replicas is how many pods the controller is to make, where that is known and all of them are of the gang; nil otherwise.
	Replicas *int32
	// Behind is how many pods, which are no members, the controller makes only when those of the gang are Ready.
	Behind int32
}

// MakerPart is a controller of pods by its kind and name.
type MakerPart struct {
	Kind schema.GroupKind
	Name string
}

// String is KIND NAME.
func (m *Maker) String() string { return m.Kind.Kind + " " + m.Name }

// By is KIND NAME of what users know, with the controller that makes the pods for it.
func (m *Maker) By() string {
	if m.Controller.Kind == m.Kind {
		return m.String()
	}
	return m.Controller.Kind.Kind + " " + m.Controller.Name + " of " + m.String()
}

// Ref is KIND.GROUP/NAME in lower case, as kubectl takes it.
func (m *Maker) Ref() string {
	return strings.TrimSuffix(strings.ToLower(m.Kind.Kind)+"."+m.Kind.Group, ".") + "/" + m.Name
}
