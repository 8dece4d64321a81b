package view

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang"
)

// members assigns the job's pods to the places that its roles ask for.
func (w *View) members(s *gang.Job) []gang.Member {
	pods := s.Bare
	if pods == nil {
		pods = w.podsOf(s)
	}
	placed := map[gang.Place]*corev1.Pod{}
	var loose []*corev1.Pod
	for _, pod := range pods {
		place, ok := gang.Place{}, false
		if s.Reader.PlaceOf != nil {
			place, ok = s.Reader.PlaceOf(pod)
		}
		if !ok {
			loose = append(loose, pod)
			continue
		}
		placed[place] = livelier(placed[place], pod)
	}
	if s.Reader.PodName == nil {
		loose = slices.DeleteFunc(loose, ended) // pods with random names are replaced under another name
	}
	var members []gang.Member
	for _, role := range s.Roles {
		for i := range int(role.Replicas) {
			m := gang.Member{Role: role.Name, Index: i, Pod: placed[gang.Place{Role: strings.ToLower(role.Name), Index: i}]}
			if m.Pod == nil {
				m.Pod, loose = takeLoose(s, m, loose)
			}
			m.State = w.state(m.Pod)
			members = append(members, m)
		}
	}
	return members
}

// takeLoose gives a member a pod without labels: the one of the right name, or any where names are random.
func takeLoose(s *gang.Job, m gang.Member, loose []*corev1.Pod) (*corev1.Pod, []*corev1.Pod) {
	want := ""
	if s.Reader.PodName != nil {
		want = s.Reader.PodName(s.Meta.Name, gang.Place{Role: strings.ToLower(m.Role), Index: m.Index})
	}
	for i, pod := range loose {
		if want == "" || pod.Name == want || strings.HasPrefix(pod.Name, want+"-") {
			return pod, slices.Delete(slices.Clone(loose), i, i+1)
		}
	}
	return nil, loose
}

// livelier prefers a pod that has not ended, then the younger one.
func livelier(a, b *corev1.Pod) *corev1.Pod {
	switch {
	case a == nil:
		return b
	case ended(a) != ended(b):
		if ended(a) {
			return b
		}
		return a
	case b.CreationTimestamp.After(a.CreationTimestamp.Time):
		return b
	}
	return a
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// podsOf are the pods of a job, also those of a batch Job that the job owns.
func (w *View) podsOf(s *gang.Job) []*corev1.Pod {
	uids := []types.UID{s.Meta.UID}
	if s.Meta.UID != "" {
		uids = append(uids, w.batchJobs().of[s.Meta.UID]...)
	}
	var pods []*corev1.Pod
	for _, uid := range uids {
		pods = append(pods, w.byController().of(uid)...)
	}
	return pods
}

func (w *View) state(pod *corev1.Pod) gang.State {
	switch {
	case pod == nil:
		return gang.Missing
	case pod.Status.Phase == corev1.PodSucceeded:
		return gang.Succeeded
	case pod.Status.Phase == corev1.PodFailed:
		return gang.Failed
	case pod.DeletionTimestamp != nil:
		return gang.Terminating
	case pod.Spec.NodeName == "" && len(pod.Spec.SchedulingGates) > 0:
		return gang.Gated
	case pod.Spec.NodeName == "":
		return gang.Pending
	case w.nodeLost(pod.Spec.NodeName):
		return gang.Lost
	case pod.Status.Phase == corev1.PodRunning && containersUp(pod):
		return gang.Running
	default:
		return gang.Starting
	}
}

// nodeLost reports whether a node is known to be away, or was deleted under its pods.
func (w *View) nodeLost(name string) bool {
	if !w.Snap.CanList("nodes", "") || len(w.Snap.Nodes) == 0 {
		return false
	}
	node := w.Cluster().Node(name)
	if node == nil {
		return true
	}
	return !NodeReady(node)
}

// NodeReady reports the Ready condition; a node without one is ready.
func NodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true
}

// containersUp is false while a container waits, or has ended badly.
func containersUp(pod *corev1.Pod) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.State.Waiting != nil || s.State.Terminated != nil && s.State.Terminated.ExitCode != 0 {
			return false
		}
	}
	return true
}
