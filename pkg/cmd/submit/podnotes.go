package submit

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
)

// What is odd about the pods of a job shows late, and nowhere near the submission: the job's controller makes them, and what refuses them is an
// event. So it is noted here; the job is submitted all the same, as it may be meant.

// podsOf are the pods of a job; none if it cannot be read, which is reported elsewhere.
func podsOf(kind gang.JobReader, job *unstructured.Unstructured) []corev1.PodSpec {
	if kind.Read == nil {
		return nil
	}
	read, err := kind.Read(job)
	if err != nil {
		return nil
	}
	var pods []corev1.PodSpec
	for _, r := range read.Roles {
		pods = append(pods, r.Template.Spec)
	}
	return pods
}

// shmNote is about memory that is mounted and larger than the memory of the container that mounts it, which it counts as; empty if there is none.
func shmNote(kind gang.JobReader, job *unstructured.Unstructured) string {
	for _, pod := range podsOf(kind, job) {
		for _, v := range pod.Volumes {
			if v.EmptyDir == nil || v.EmptyDir.Medium != corev1.StorageMediumMemory || v.EmptyDir.SizeLimit == nil {
				continue
			}
			for _, c := range pod.Containers {
				limit, limited := c.Resources.Limits[corev1.ResourceMemory]
				i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
				if i >= 0 && limited && limit.Cmp(*v.EmptyDir.SizeLimit) < 0 {
					return fmt.Sprintf("%s may hold %s, and counts as memory, of which its member may use %s: a member that fills it is killed", c.VolumeMounts[i].MountPath, v.EmptyDir.SizeLimit, &limit)
				}
			}
		}
	}
	return ""
}

// needs is an object by name that pods cannot be made without. The namespace of a PriorityClass is empty.
type needs struct{ kind, namespace, name string }

// noteMissing notes the PriorityClasses and ServiceAccounts that the pods of jobs name and that are not there: no pod is made without. What the user
// may not get, and what the batch has itself, is not noted.
func (c *creator) noteMissing(ctx context.Context, b *batch, jobs []*rehearsal) {
	looked := map[needs]bool{}
	for i, r := range jobs {
		for _, pod := range podsOf(b.jobs[i].kind, r.Job) {
			for _, n := range []needs{{"PriorityClass", "", pod.PriorityClassName}, {"ServiceAccount", r.Job.GetNamespace(), pod.ServiceAccountName}} {
				if n.name == "" || looked[n] || b.brings(n) {
					continue
				}
				looked[n] = true
				if c.lacks(ctx, n) {
					fmt.Fprintf(c.io.ErrOut, "note: %s %q does not exist: %s has no pods until it does\n", n.kind, n.name, named(r.Job))
				}
			}
		}
	}
}

// brings reports whether an object is created with the jobs.
func (b *batch) brings(n needs) bool {
	return slices.ContainsFunc(b.others, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == n.kind && u.GetName() == n.name && (n.namespace == "" || u.GetNamespace() == n.namespace)
	})
}

// lacks reports whether an object is known not to be there.
func (c *creator) lacks(ctx context.Context, n needs) bool {
	var err error
	if n.kind == "PriorityClass" {
		_, err = c.client.Typed.SchedulingV1().PriorityClasses().Get(ctx, n.name, metav1.GetOptions{})
	} else {
		_, err = c.client.Typed.CoreV1().ServiceAccounts(n.namespace).Get(ctx, n.name, metav1.GetOptions{})
	}
	return apierrors.IsNotFound(err)
}
