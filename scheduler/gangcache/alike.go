package gangcache

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
)

// alike counts the live members of a gang by what its virtual PodGroup is derived from. The members of a gang differ in little, and
// every event of one derives the group again: it goes through the kinds of members, and not through all of them.
type alike map[memberKind]*memberCount

// memberKind is all that is taken of a live member.
type memberKind struct {
	gated               bool
	terms               gang.Terms
	min                 int32
	minErr, role        string
	owner               types.UID
	created             int64 // seconds, as the API has them
	required, preferred string
}

// memberCount is how many members are of a kind, and one that is or was.
type memberCount struct {
	n       int32
	example *podInfo
}

func kindOf(info *podInfo) memberKind {
	pod := info.pod
	kind := memberKind{
		gated: len(pod.Spec.SchedulingGates) > 0, terms: gang.TermsOf(one(pod)), min: info.min, role: info.role, owner: info.owner.UID,
		created: pod.CreationTimestamp.Unix(), required: pod.Annotations[gang.TopologyRequired], preferred: pod.Annotations[gang.TopologyPreferred],
	}
	if info.minErr != nil {
		kind.minErr = info.minErr.Error()
	}
	return kind
}

func one(pod *corev1.Pod) iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) { yield(pod) }
}

func (a alike) add(info *podInfo) {
	kind := kindOf(info)
	if a[kind] == nil {
		a[kind] = &memberCount{example: info}
	}
	a[kind].n++
}

func (a alike) remove(info *podInfo) {
	kind := kindOf(info)
	if a[kind].n--; a[kind].n == 0 {
		delete(a, kind)
	}
}

// examples are a pod of each kind.
func (a alike) examples() iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for _, count := range a {
			if !yield(count.example.pod) {
				return
			}
		}
	}
}

// put adds a pod to the gang.
func (e *entry) put(info *podInfo) {
	e.pods[info.phase][info.pod.UID] = info
	if info.phase == live {
		e.alike.add(info)
	}
}

// take removes a pod from the gang.
func (e *entry) take(info *podInfo) {
	delete(e.pods[info.phase], info.pod.UID)
	if info.phase == live {
		e.alike.remove(info)
	}
}
