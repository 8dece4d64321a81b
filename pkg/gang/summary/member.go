package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Member is one pod that the job has, or should have.
type Member struct {
	// Role is the replica type in lower case, as it is in the pod's name and labels.
	Role  string
	Index int
	// Pod is nil if there is none.
	Pod   *corev1.Pod
	State State
	// GPUs is what the member asks for.
	GPUs int64
	// Reason says why the member does not run; empty if it does.
	Reason string
	// Main is the container that does the work.
	Main string
}

// Name is ROLE-INDEX.
func (m Member) Name() string { return fmt.Sprintf("%s-%d", m.Role, m.Index) }

// Node is where the member is, or "".
func (m Member) Node() string {
	if m.Pod == nil {
		return ""
	}
	return m.Pod.Spec.NodeName
}

// Owner is the uid of the job that controls a pod, or "".
func Owner(pod *corev1.Pod) types.UID {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return ref.UID
	}
	return ""
}

// Owns reports whether a job controls a pod: by itself or, as the MPI Operator has it for the launcher, by a Job that is named
// after it. The pods of a deleted job of the same name are not told apart in that one case.
func Owns(job gang.Job, pod *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil {
		return false
	}
	return ref.UID == job.Meta.UID || job.Kind.Kind == "MPIJob" && ref.Kind == "Job" && ref.Name == job.Meta.Name+"-launcher" && pod.Namespace == job.Meta.Namespace
}

// Members are the members that the spec asks for, in order of role and index, each with its pod. Pods of other owners, and
// those beyond the number of replicas, are left out.
func Members(r gang.JobReader, job gang.Job, pods []*corev1.Pod) []Member {
	placed, named := map[gang.Place]*corev1.Pod{}, map[string]*corev1.Pod{}
	var loose []*corev1.Pod
	for _, pod := range pods {
		if !Owns(job, pod) {
			continue
		}
		if place, ok := r.PlaceOf(pod); ok {
			placed[place] = better(placed[place], pod)
		} else {
			named[pod.Name] = pod
			loose = append(loose, pod)
		}
	}
	var members []Member
	for _, role := range job.Roles {
		gpus := request.GPUs(request.Of(role.Template.Spec))
		for _, i := range indexes(job, role, placed) {
			m := Member{Role: strings.ToLower(role.Name), Index: i, GPUs: gpus, Main: role.Main}
			place := gang.Place{Role: m.Role, Index: i}
			if m.Pod = placed[place]; m.Pod == nil && r.PodName != nil {
				m.Pod = named[r.PodName(job.Meta.Name, place)]
			}
			members = append(members, m)
		}
	}
	if r.PodName == nil {
		members = seat(members, loose)
	}
	for i := range members {
		members[i].State, members[i].Reason = memberState(members[i].Pod)
	}
	return members
}

// indexes are those of the members of a role. A Job of Kubernetes asks only for what is left to complete: those that are done are
// members all the same.
func indexes(job gang.Job, role gang.Role, placed map[gang.Place]*corev1.Pod) []int {
	var all []int
	left := int(role.Replicas)
	for i := 0; left > 0; i++ {
		if job.Kind.Group == "batch" && done(placed[gang.Place{Role: strings.ToLower(role.Name), Index: i}]) {
			continue
		}
		all = append(all, i)
		left--
	}
	if job.Kind.Group == "batch" {
		for place, pod := range placed {
			if done(pod) && !slices.Contains(all, place.Index) {
				all = append(all, place.Index)
			}
		}
		slices.Sort(all)
	}
	return all
}

func done(pod *corev1.Pod) bool { return pod != nil && pod.Status.Phase == corev1.PodSucceeded }

// seat gives the pods of a job that tells its members apart by random names to members without one, and adds members for those
// that are done.
func seat(members []Member, loose []*corev1.Pod) []Member {
	slices.SortFunc(loose, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), strings.Compare(a.Name, b.Name))
	})
	for _, pod := range loose {
		i := slices.IndexFunc(members, func(m Member) bool { return m.Pod == nil })
		switch {
		case i >= 0 && !done(pod):
			members[i].Pod = pod
		case done(pod) && len(members) > 0:
			members = append(members, Member{Role: members[0].Role, Index: len(members), GPUs: members[0].GPUs, Pod: pod})
		case done(pod):
			members = append(members, Member{Role: "worker", Index: 0, Pod: pod})
		}
	}
	return members
}

// better is the pod that stands for a member of which there are two: one that failed, and the one that replaces it.
func better(a, b *corev1.Pod) *corev1.Pod {
	if a == nil || cmp.Or(cmp.Compare(rank(a), rank(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0 {
		return b
	}
	return a
}

// rank is higher for a pod that is worth more.
func rank(pod *corev1.Pod) int {
	switch {
	case done(pod):
		return 3
	case pod.Status.Phase == corev1.PodFailed:
		return 0
	case pod.DeletionTimestamp != nil:
		return 1
	}
	return 2
}
