package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Member is one member that a job has or should have.
type Member struct {
	// Role is the role as the spec writes it: Worker, PS, Launcher.
	Role  string
	Index int
	// Pod is nil if there is none.
	Pod *corev1.Pod
	// State is one of the states of a member.
	State State
}

// Name is ROLE-INDEX, as in the names of pods.
func (m Member) Name() string { return fmt.Sprintf("%s-%d", strings.ToLower(m.Role), m.Index) }

// Node is where the member is, or "".
func (m Member) Node() string {
	if m.Pod == nil {
		return ""
	}
	return m.Pod.Spec.NodeName
}

// Bound reports whether the member holds room on a node.
func (m Member) Bound() bool {
	return m.State == Starting || m.State == Running || m.State == Lost || m.State == Terminating && m.Pod.Status.Phase != corev1.PodFailed
}

// Owns reports whether a job controls a pod: by itself, by the object that was made of it, or by an object that is a part of it.
func (j *Job) Owns(pod *corev1.Pod) bool {
	if j.Made != nil {
		return j.Made.Owns(pod)
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || pod.Namespace != j.Meta.Namespace {
		return false
	}
	if j.MadeAs != "" && ref.Name == j.MadeAs && OwnerKind(ref) == j.Reader.Makes {
		return true
	}
	return ref.UID == j.Meta.UID || j.Reader.OwnsPart != nil && j.Reader.OwnsPart(&j.Meta, pod, ref)
}

// Assemble returns the members that a job has or should have, in the order of its roles and of their indexes, each with its pod. The
// pods are those of the job; pods beyond its replicas are left out. nodeLost reports whether a node is gone or not Ready; nil where
// nodes are not known.
//
// Of two pods of one member, the one that has succeeded counts, then one that lives, then the younger. A Job of Kubernetes requests
// what is left to complete: pods that have succeeded are members beyond that. Indexes that have failed for good are no members.
//
// A job may request any number of members. Those without a pod are listed up to a limit; unlisted are, by role, how many there are
// beyond.
func Assemble(job *Job, pods []*corev1.Pod, nodeLost func(node string) bool) (members []Member, unlisted map[string]int32) {
	a := assembly{job: job, placed: map[RoleIndex]*corev1.Pod{}, missing: maxListed, unlisted: map[string]int32{}}
	for _, pod := range pods {
		a.add(pod)
	}
	slices.SortStableFunc(a.loose, func(x, y *corev1.Pod) int {
		return cmp.Or(cmp.Compare(worth(y), worth(x)), strings.Compare(x.Name, y.Name))
	})
	members = a.members()
	for i := range members {
		members[i].State = memberState(members[i].Pod, nodeLost)
	}
	holdBack(job, members)
	return members, a.unlisted
}

// assembly is one run of Assemble.
type assembly struct {
	job    *Job
	placed map[RoleIndex]*corev1.Pod
	// loose are the pods without an index. roles are the roles of those that have one, in lower case.
	loose []*corev1.Pod
	roles map[*corev1.Pod]string
	// missing is how many members without a pod may be listed still.
	missing  int
	unlisted map[string]int32
}

func (a *assembly) add(pod *corev1.Pod) {
	if a.job.FailedForGood(pod) {
		return
	}
	if read := a.job.Reader.RoleIndexOf; read != nil {
		place, ok := read(a.job, pod)
		if ok && place.Index < 0 {
			if a.roles == nil {
				a.roles = map[*corev1.Pod]string{}
			}
			a.roles[pod] = place.Role
		} else if ok {
			if other := a.placed[place]; other == nil || better(pod, other) {
				a.placed[place] = pod
			}
			return
		}
	}
	a.loose = append(a.loose, pod)
}

func (a *assembly) members() []Member {
	var members []Member
	for n, role := range a.job.Roles {
		if n >= maxRoles {
			if role.Replicas > 0 {
				a.unlisted[role.Name] = role.Replicas
			}
			continue
		}
		for _, i := range a.indexes(role) {
			place := RoleIndex{Role: strings.ToLower(role.Name), Index: i}
			m := Member{Role: role.Name, Index: i, Pod: a.placed[place]}
			if m.Pod == nil && a.job.Reader.PodName != nil {
				m.Pod = a.takeNamed(a.job.Reader.PodName(a.job.Meta.Name, place))
			}
			if m.Pod == nil {
				a.missing--
			}
			members = append(members, m)
		}
	}
	if a.job.Reader.PodName == nil {
		members = a.assign(members)
	}
	return members
}

// indexes are those of the members of a role that are listed: of the first ones, with or without a pod, and of all that have one. It
// looks at no more indexes than there are pods and members without one to list, whatever the spec requests.
func (a *assembly) indexes(role Role) []int {
	var all []int
	batch := a.job.Kind.Group == "batch"
	left, reach := a.left(role), len(a.loose)+max(a.missing, 0)
	name := strings.ToLower(role.Name)
	done := func(index int) bool { return batch && succeeded(a.placed[RoleIndex{Role: name, Index: index}]) }
	placed := a.placedIndexes(name)
	i := 0
	for ; left > 0 && len(all) < reach+len(placed); i++ {
		if last, failed := a.job.FailedIndexes.Through(i); failed {
			i = last
			continue
		}
		if done(i) {
			continue
		}
		all = append(all, i)
		left--
	}
	for _, index := range placed {
		switch {
		case done(index):
			all = append(all, index)
		case index >= i && left > 0 && (batch || int64(index) < int64(role.Replicas)):
			all = append(all, index)
			left--
		}
	}
	if left > 0 {
		a.unlisted[role.Name] = left
	}
	slices.Sort(all)
	return all
}

// left is how many members a role is to have besides those that have succeeded. A Job of Kubernetes counts a pod a moment after it has succeeded; until then
// the pod is not a member twice. One without a number of completions makes no pod once one has succeeded.
func (a *assembly) left(role Role) int32 {
	left, job := max(role.Replicas, 0), a.job.BatchJob
	if job == nil {
		return left
	}
	var done, alive int32
	count := func(pod *corev1.Pod) {
		switch pod.Status.Phase {
		case corev1.PodSucceeded:
			done++
		case corev1.PodFailed:
		default:
			alive++
		}
	}
	for _, pod := range a.placed {
		count(pod)
	}
	for _, pod := range a.loose {
		count(pod)
	}
	done = max(done, job.Status.Succeeded)
	switch completions := job.Spec.Completions; {
	case completions != nil:
		return min(left, max(0, *completions-done-a.job.FailedIndexes.Count()))
	case done > 0:
		return min(left, alive)
	}
	return left
}

// placedIndexes are those of a role's pods, sorted. The role is in lower case.
func (a *assembly) placedIndexes(role string) []int {
	var all []int
	for place := range a.placed {
		if place.Role == role {
			all = append(all, place.Index)
		}
	}
	slices.Sort(all)
	return all
}

// takeNamed takes the loose pod of a name. A Job that a controller makes for a member adds random letters to it.
func (a *assembly) takeNamed(name string) *corev1.Pod {
	i := slices.IndexFunc(a.loose, func(pod *corev1.Pod) bool {
		return pod.Name == name || strings.HasPrefix(pod.Name, name+"-")
	})
	if i < 0 {
		return nil
	}
	pod := a.loose[i]
	a.loose = slices.Delete(a.loose, i, i+1)
	return pod
}

// assign gives the pods of random names to the members of their role without one, and adds members for those that have succeeded. The
// pods of a gang that no job owns are its members, however they ended.
func (a *assembly) assign(members []Member) []Member {
	for _, pod := range a.loose {
		role, known := a.roles[pod]
		is := func(m Member) bool { return !known || strings.EqualFold(m.Role, role) }
		i := slices.IndexFunc(members, func(m Member) bool { return m.Pod == nil && is(m) })
		extra := succeeded(pod) && a.job.Bare == nil
		first := slices.IndexFunc(members, is)
		switch {
		case i >= 0 && !extra:
			members[i].Pod = pod
		case extra && first >= 0:
			members = append(members, Member{Role: members[first].Role, Index: len(members), Pod: pod})
		case extra && len(a.job.Roles) > 0 && !known:
			members = append(members, Member{Role: a.job.Roles[0].Name, Pod: pod})
		}
	}
	return members
}

// better reports whether a pod counts for a member before another.
func better(pod, other *corev1.Pod) bool {
	return cmp.Or(cmp.Compare(worth(pod), worth(other)), pod.CreationTimestamp.Compare(other.CreationTimestamp.Time), strings.Compare(pod.Name, other.Name)) > 0
}

// worth is higher for a pod that does more for its gang.
func worth(pod *corev1.Pod) int {
	switch {
	case succeeded(pod):
		return 3
	case pod.Status.Phase == corev1.PodFailed:
		return 0
	case pod.DeletionTimestamp != nil:
		return 1
	}
	return 2
}

// UIDs are the UIDs of pods, in their order.
func UIDs(pods []*corev1.Pod) []types.UID {
	all := make([]types.UID, 0, len(pods))
	for _, pod := range pods {
		all = append(all, pod.UID)
	}
	return all
}

func succeeded(pod *corev1.Pod) bool { return pod != nil && pod.Status.Phase == corev1.PodSucceeded }

// PlacedAt is when a pod got its node; zero where that is not known.
func PlacedAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// PodName is the name that each pod of a member has; empty where names are random.
func (j *Job) PodName(m Member) string {
	if j.Reader.PodName == nil {
		return ""
	}
	return j.Reader.PodName(j.Meta.Name, RoleIndex{Role: strings.ToLower(m.Role), Index: m.Index})
}

// EndOf is when the last container of a pod that has ended did; zero where that is not known. A simulated kubelet may leave the containers out; then it is
// when the pod was not ready any more.
func EndOf(pod *corev1.Pod) (end time.Time) {
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.FinishedAt.After(end) {
			end = t.FinishedAt.Time
		}
	}
	if !end.IsZero() {
		return end
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue {
			end = c.LastTransitionTime.Time
		}
	}
	return end
}
