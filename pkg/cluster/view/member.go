package view

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/placement"
)

// members are those of a job, with the states of their pods, as [gang.Assemble] returns them.
func (w *View) members(job *gang.Job) ([]gang.Member, map[string]int32) {
	pods := job.Bare
	if pods == nil {
		pods = w.podsOf(job)
	}
	members, unlisted := gang.Assemble(job, pods, w.nodeLost)
	gang.DemoteCrashLoops(members, w.Now)
	if m := job.Maker; m != nil && m.Controller.Kind == statefulSet() {
		for i, one := range members { // its pods are made again, however they ended
			if one.State == gang.Succeeded && one.Pod.DeletionTimestamp != nil {
				members[i].State = gang.Terminating
			}
		}
	}
	return members, unlisted
}

// podsOf are the pods of a job, also those of what was made of it, and of a batch Job that is a part of it. One that only helps, as that
// which submits the entrypoint of a RayJob, is none.
func (w *View) podsOf(s *gang.Job) []*corev1.Pod {
	made, parts := w.makers(s)
	pods := slices.Clone(w.byController().of(gang.IdentityOf(&s.Meta)))
	for _, u := range made {
		pods = append(pods, w.byController().of(gang.IdentityOf(u))...)
	}
	for _, part := range parts {
		pods = append(pods, w.byController().of(part)...)
	}
	if s.Reader.ByLabel {
		pods = append(pods, w.podsByLabel()[labelledJob{s.Reader.GroupKind, s.Meta.Namespace, s.Meta.Name}]...)
	}
	return pods
}

// PodsOf are the pods of a job, of all of its gangs.
func (w *View) PodsOf(s *gang.Job) []*corev1.Pod { return w.podsOf(s) }

// makers are the objects through which the pods of a job are made, besides the job itself: what its controller made of it, and the batch Jobs that
// are parts of it or of that.
func (w *View) makers(s *gang.Job) (made []*unstructured.Unstructured, parts []gang.Identity) {
	if s.Meta.UID == "" {
		return nil, nil
	}
	own := gang.IdentityOf(&s.Meta)
	made = w.made().as[own]
	if s.Reader.OwnsPart == nil {
		return made, nil
	}
	parts = slices.Clone(w.batchJobs().of[own])
	for _, u := range made {
		parts = append(parts, w.batchJobs().of[gang.IdentityOf(u)]...)
	}
	return made, parts
}

// Makes reports whether an object is a pod of a job, or is controlled by the job or by one of the objects through which its pods are made.
func (w *View) Makes(s *gang.Job, obj metav1.Object) bool {
	if ref := metav1.GetControllerOf(obj); ref != nil {
		made, parts := w.makers(s)
		if ref.UID == s.Meta.UID || slices.ContainsFunc(made, func(u *unstructured.Unstructured) bool { return u.GetUID() == ref.UID }) ||
			slices.Contains(parts, gang.Identity{Namespace: obj.GetNamespace(), UID: ref.UID}) {
			return true
		}
	}
	p, ok := obj.(*corev1.Pod)
	return ok && slices.Contains(w.podsOf(s), p)
}

// labelledJob is a job of a kind with [gang.JobReader.ByLabel].
type labelledJob struct {
	kind            schema.GroupKind
	namespace, name string
}

// podsByLabel finds the pods of such jobs that they do not control themselves.
func (w *View) podsByLabel() map[labelledJob][]*corev1.Pod {
	type ofSnapshot struct{}
	return Once(w, ofSnapshot{}, func() map[labelledJob][]*corev1.Pod {
		all := map[labelledJob][]*corev1.Pod{}
		for _, pod := range w.Snap.Pods {
			if reader, name := kinds.ByLabel(pod); name != "" {
				at := labelledJob{reader.GroupKind, pod.Namespace, name}
				all[at] = append(all[at], pod)
			}
		}
		return all
	})
}

// nodeLost reports whether a node is known to be away, or was deleted under its pods.
func (w *View) nodeLost(name string) bool {
	if !w.Snap.CanList("nodes", "") || len(w.Snap.Nodes) == 0 {
		return false
	}
	node := w.Cluster().Node(name)
	return node == nil || !placement.NodeReady(node)
}

// EndedAt is when a pod that has failed was ended: by the event of its eviction, by the condition of who evicted it, or else as [gang.EndOf] has it.
func (w *View) EndedAt(pod *corev1.Pod) time.Time {
	for _, e := range w.EventsOfPod(pod) {
		if e.Reason == "Evicted" {
			return e.Last
		}
	}
	if by := gang.Disruption(pod); by != nil {
		return by.LastTransitionTime.Time
	}
	return gang.EndOf(pod)
}

// NodeLostAt is since when a node has not been Ready; zero for one that is, or is gone.
func (w *View) NodeLostAt(name string) time.Time {
	if node := w.Cluster().Node(name); node != nil {
		if down := placement.NotReadyCondition(node); down != nil {
			return down.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// RoomSince is the latest moment at which a node came, became ready or ceased to be, or a container on one ended.
func (w *View) RoomSince() time.Time {
	type roomSince struct{}
	return Once(w, roomSince{}, func() (last time.Time) {
		for _, n := range w.Snap.Nodes {
			last = Later(last, placement.ReadyChangedAt(n))
		}
		for _, p := range w.Snap.Pods {
			for _, s := range p.Status.ContainerStatuses {
				if s.State.Terminated != nil && p.Spec.NodeName != "" {
					last = Later(last, s.State.Terminated.FinishedAt.Time)
				}
			}
		}
		return last
	})
}
