package gang

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// State is how a member is.
type State string

// The states of a member.
const (
	Missing     State = "Missing"     // no pod
	Gated       State = "Gated"       // a scheduling gate holds it
	Pending     State = "Pending"     // no node
	Starting    State = "Starting"    // a node, but not up
	Running     State = "Running"     // runs
	Succeeded   State = "Succeeded"   // ended well; counts for ever
	Failed      State = "Failed"      // ended badly, and was not replaced
	Terminating State = "Terminating" // being deleted
	Lost        State = "Lost"        // on a node that is gone or not Ready
)

// Member is one member that the job has or should have.
type Member struct {
	Role  string
	Index int
	// Pod is nil if there is none.
	Pod   *corev1.Pod
	State State
}

// Name is ROLE-INDEX, as in the names of pods.
func (m Member) Name() string { return fmt.Sprintf("%s-%d", strings.ToLower(m.Role), m.Index) }

// Bound reports whether the member holds room on a node.
func (m Member) Bound() bool {
	return m.State == Starting || m.State == Running || m.State == Terminating || m.State == Lost
}
