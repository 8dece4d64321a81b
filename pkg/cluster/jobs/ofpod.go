package jobs

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// PodName is the name of the pod in pod/NAME.
func PodName(arg string) (name string, ok bool) {
	kind, name, found := strings.Cut(arg, "/")
	if !found || !kinds.MeansPod(kind) {
		return "", false
	}
	return name, true
}

// OfPod gets a pod, and the job that it is of. That it is of none is an error.
func OfPod(ctx context.Context, client *kube.Client, namespace, name string) (*gang.Job, *corev1.Pod, error) {
	op := failure.Op{Verb: "get", Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "pod", Namespace: namespace, Name: name}
	pod, err := client.Typed.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		err = op.Wrap(err)
		if apierrors.IsNotFound(err) {
			err = failure.From(err).WithHint("see the jobs with gangctl list -n %[1]s, and the pods of one with gangctl get NAME -n %[1]s", namespace)
		}
		return nil, nil, err
	}
	kind, owner := ownerOf(pod)
	if kind == batchjob.Reader().GroupKind {
		// The launcher of an MPIJob is a pod of a Job of its own.
		jobOp := failure.Op{Verb: "get", Resource: schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, Kind: "Job", Namespace: namespace, Name: owner}
		job, err := client.Typed.BatchV1().Jobs(namespace).Get(ctx, owner, metav1.GetOptions{})
		if err != nil {
			return nil, nil, jobOp.Wrap(err)
		}
		// One that a CronJob made, or another that is no job, is a job of its own.
		if ref, whole := kinds.WholeOf(job); ref != nil {
			kind, owner = whole.GroupKind, ref.Name
		}
	}
	if whole, name := kinds.ByLabel(pod); name != "" {
		kind, owner = whole.GroupKind, name
	}
	reader, known := kinds.ByKind(kind)
	if !known {
		return nil, nil, noMember(pod, kind, owner)
	}
	job, err := Find(ctx, client, namespace, reader.Argument(owner))
	var missing *gang.JobNotFoundError
	if kind == batchjob.Reader().GroupKind && errors.As(err, &missing) { // it is there, and no gang
		return nil, nil, noMember(pod, kind, owner)
	}
	if err != nil {
		return nil, pod, err
	}
	if ref, above := kinds.SourceOf(kind, &job.Meta); ref != nil {
		whole, err := Find(ctx, client, namespace, above.Argument(ref.Name))
		switch {
		case err == nil:
			return whole, pod, nil
		case !errors.As(err, &missing) && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return nil, pod, err
		}
	}
	return job, pod, nil
}

// noMember is the error of a pod that is of none of our jobs.
func noMember(pod *corev1.Pod, kind schema.GroupKind, owner string) error {
	text := "it has no owner"
	if owner != "" {
		text = "its owner is " + kind.Kind + " " + owner
	}
	return failure.Errorf("pod %s/%s is no member of a job: %s", pod.Namespace, pod.Name, text).WithHint("see the jobs: gangctl list -n %s", pod.Namespace)
}

// ownerOf is the controller of an object; empty for one without.
func ownerOf(obj metav1.Object) (kind schema.GroupKind, name string) {
	ref := metav1.GetControllerOf(obj)
	if ref == nil {
		return schema.GroupKind{}, ""
	}
	return gang.OwnerKind(ref), ref.Name
}
