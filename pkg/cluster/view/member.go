package view

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
)

// members are those of a job, with the states of their pods, as [gang.Assemble] returns them.
func (w *View) members(job *gang.Job) ([]gang.Member, map[string]int32) {
	pods := job.Bare
	if pods == nil {
		pods = w.podsOf(job)
	}
	return gang.Assemble(job, pods, w.nodeLost)
}

// podsOf are the pods of a job, also those of what was made of it, and of a batch Job that is a part of it. One that only helps, as that
// which submits the entrypoint of a RayJob, is none.
func (w *View) podsOf(s *gang.Job) []*corev1.Pod {
	owners := []gang.Identity{gang.IdentityOf(&s.Meta)}
	if s.Meta.UID != "" {
		for _, made := range w.made().as[owners[0]] {
			owners = append(owners, gang.IdentityOf(made))
		}
	}
	if s.Meta.UID != "" && s.Reader.OwnsPart != nil {
		for _, owner := range slices.Clone(owners) {
			owners = append(owners, w.batchJobs().of[owner]...)
		}
	}
	var pods []*corev1.Pod
	for _, owner := range owners {
		pods = append(pods, w.byController().of(owner)...)
	}
	if s.Reader.ByLabel {
		pods = append(pods, w.podsByLabel()[labelledJob{s.Reader.GroupKind, s.Meta.Namespace, s.Meta.Name}]...)
	}
	return pods
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
