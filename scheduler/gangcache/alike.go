package gangcache

import (
	"cmp"
	"errors"
	"iter"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// alike counts the live members of a gang by what its virtual PodGroup is derived from. The members of a gang differ in little, and
// every event of one derives the group again: it goes through the kinds of members, and not through all of them.
type alike map[memberKind]*memberCount

// memberKind is all that is taken of a live member.
type memberKind struct {
	gated        bool
	scheduler    string
	terms        gang.Terms
	min          int32
	minErr, role string
	job          string
	created      int64 // seconds, as the API has them
	topology     string
}

// memberCount is how many members are of a kind, and one that is or was.
type memberCount struct {
	n       int32
	example *podInfo
}

func kindOf(info *podInfo) memberKind {
	pod := info.pod
	kind := memberKind{
		gated: len(pod.Spec.SchedulingGates) > 0, scheduler: pod.Spec.SchedulerName, terms: gang.TermsOf(one(pod)), min: info.min, role: info.role, job: info.job,
		created: pod.CreationTimestamp.Unix(), topology: topologyText(info),
	}
	if info.minErr != nil {
		kind.minErr = info.minErr.Error()
	}
	return kind
}

// topologyText is what a pod states of the domain that it shares with others; empty for nothing.
func topologyText(info *podInfo) string {
	var text string
	for _, key := range gang.TopologyAnnotations() {
		if value := info.pod.Annotations[key]; value != "" {
			text += key + "=" + value + "\n"
		}
	}
	if !info.topology.Empty() {
		text += info.topology.String()
	}
	if info.unclear != nil {
		text += info.unclear.Error()
	}
	return text
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

// scheduler is the schedulerName of the oldest member, the first by name of several; empty without members.
func (a alike) scheduler() string {
	var oldest *memberKind
	for kind := range a {
		if oldest == nil || cmp.Or(cmp.Compare(kind.created, oldest.created), cmp.Compare(kind.scheduler, oldest.scheduler)) < 0 {
			oldest = &kind
		}
	}
	if oldest == nil {
		return ""
	}
	return oldest.scheduler
}

// schedulers is how many schedulerNames the members have.
func (a alike) schedulers() int {
	names := map[string]bool{}
	for kind := range a {
		names[kind.scheduler] = true
	}
	return len(names)
}

// stated is the topology that members state in the words of their dialect; empty for none.
func (a alike) stated() (all gang.Topology, err error) {
	disagree := false
	for _, count := range a {
		m := count.example
		if m.unclear != nil && (err == nil || m.unclear.Error() < err.Error()) {
			err = m.unclear
		}
		switch {
		case m.topology.Empty():
		case all.Empty():
			all = m.topology
		default:
			disagree = disagree || m.topology.String() != all.String()
		}
	}
	if err == nil && disagree {
		err = errors.New("its pods state different topologies")
	}
	if err != nil {
		return gang.Topology{}, err
	}
	return all, nil
}

// divided reports whether a member has rules for parts in an annotation.
func (a alike) divided() bool {
	for pod := range a.examples() {
		if pod.Annotations[gang.TopologyParts] != "" {
			return true
		}
	}
	return false
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
