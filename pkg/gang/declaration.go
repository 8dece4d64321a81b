package gang

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Declaration is what a group object, or the labels and annotations of pods alone, state about one
// gang.
type Declaration struct {
	Key Key
	// Kind is that of the group object; empty where the dialect has none.
	Kind schema.GroupVersionKind
	UID  types.UID
	// Owner is the uid of the object that controls the group object.
	Owner   types.UID
	Created time.Time
	// MinMember is the number of members below which the gang is useless; at least 1.
	MinMember int32
	// RoleMin is the same for single roles, by the role's lower-case name; usually nil.
	RoleMin map[string]int32
	// Queue is empty where the dialect has none.
	Queue         string
	PriorityClass string
	// Priority and PreemptionPolicy are what the API server made of the class, where it does so; nil and empty otherwise.
	Priority         *int32
	PreemptionPolicy corev1.PreemptionPolicy
	// Basic is true for a group that is no gang: its members share a group and nothing else.
	Basic bool
	// Parent is the composite group of which the group is a part; empty for none. A scheduler that knows composite groups places the members of
	// all parts at once.
	Parent string
	// Alongside are the other gangs with which the scheduler places this one: all of them at once, or none, until that has been once.
	Alongside []Key
	// Together is true for a group of which all members are evicted or none. It counts for one that is no gang, and for a part.
	Together bool
	// MinResources is what an admission step reserves for the gang.
	MinResources corev1.ResourceList
	// Topology is by which node labels members share a domain, and TopologyFrom where that is stated.
	Topology     Topology
	TopologyFrom TopologySource
	// TopologyProblem is why what pods state of it cannot be read; usually nil.
	TopologyProblem error
	// Unapplied are rules that are stated and not applied, because what they refer to is not read.
	Unapplied []UnappliedRule
	// Phase is what the controller or scheduler wrote, verbatim.
	Phase string
	// Conditions are those in which a scheduler reports why the gang waits.
	Conditions []Condition
}

// UnappliedRule is a rule that a dialect's own scheduler may know and nothing here does.
type UnappliedRule struct {
	// Text describes it, and completes "… is not applied".
	Text string
	// Required is set on a rule for which the gang may have to wait, and not on a preference.
	Required bool
}

// Condition is one message of a scheduler.
type Condition struct {
	Reason, Message string
	At              time.Time
}

// Explained joins a reason, which is a name, and its message, each of which may be empty.
func Explained(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// Reader reads one dialect.
type Reader struct {
	Dialect Dialect
	// Kinds are those of the group objects, with the resource names under which they are served. Nil without objects.
	Kinds []Served
	// Schedulers are the schedulerNames that are known to read this dialect and no other.
	Schedulers []string
	// Implied reports that it is not the author of pods who references the group, but the controller that makes them: the gang counts for pods
	// that name no other.
	Implied bool
	// Adopts reports that a controller of the scheduler has pods name the group of what owns them once they are made: that they name none is no mistake.
	Adopts bool
	// NameOf returns the group that a pod references.
	NameOf func(pod metav1.Object) (string, bool)
	// NameOfPod is NameOf for a dialect that uses a field of the pod rather than metadata; nil otherwise.
	NameOfPod func(pod *corev1.Pod) (string, bool)
	// RoleOf returns the role of a pod, in the spelling of Declaration.RoleMin; nil where the dialect has no minimum for roles.
	RoleOf func(pod metav1.Object) string
	// Decode reads a group object; nil without objects.
	Decode func(*unstructured.Unstructured) (Declaration, error)
	// FromPods declares a gang from the labels and annotations of its pods, in a dialect where pods carry the whole declaration; nil
	// otherwise.
	FromPods func(key Key, pods []*corev1.Pod) (Declaration, error)
	// SetMinimum overwrites the minimum that FromPods reads, where a template of pods states it. Before and after are the roles of the
	// gang. Nil where no template does.
	SetMinimum func(template *metav1.ObjectMeta, minimum int32, before, after []Role)
}

// Restate gives some labels or annotations another number, those of them that there are.
func Restate(entries map[string]string, n int32, keys ...string) {
	for _, key := range keys {
		if _, stated := entries[key]; stated {
			entries[key] = strconv.Itoa(int(n))
		}
	}
}

// Served is a kind and the resource name under which it is served.
type Served struct {
	schema.GroupKind
	Resource string
}

// GroupOf returns the group that a pod references.
func (r Reader) GroupOf(pod *corev1.Pod) (name string, ok bool) {
	if r.NameOfPod != nil {
		return r.NameOfPod(pod)
	}
	name, ok = r.NameOf(pod)
	return BoundedName(name), ok
}

// maxName is how long the name of an object may be.
const maxName = validation.DNS1123SubdomainMaxLength

// BoundedName is a name that an object can have, or the beginning of a longer one with what distinguishes it. No object is called like that, but
// an annotation may have 256 KiB and the reference to an owner a megabyte: what is kept of names, and written to each pod of a gang, is bounded.
func BoundedName(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s…%x", strings.ToValidUTF8(name[:maxName/2], ""), sum[:8])
}
