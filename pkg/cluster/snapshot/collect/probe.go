package collect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
)

// probePods tries whether the API server accepts pods, one of each role that a job lacks: the refusal is read first-hand, not from
// an event. A webhook that reads the owner of a pod, as Kueue's does, does not find a job that is not there yet: then the pod is tried without.
func probePods(ctx context.Context, client *kube.Client, s *snapshot.Snapshot, pods []*corev1.Pod) {
	for _, pod := range pods {
		create := func(pod *corev1.Pod) error {
			_, err := client.Typed.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		err := create(pod)
		if owner := metav1.GetControllerOf(pod); err != nil && owner != nil && strings.Contains(err.Error(), fmt.Sprintf("%q not found", owner.Name)) {
			orphan := pod.DeepCopy()
			orphan.OwnerReferences = nil
			err = create(orphan)
		}
		note(s, snapshot.Probe{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}, "pods", err)
	}
}

// note records the API server's answer to a create of a resource. A refusal that is about the caller's own rights shows
// nothing of the object: others may create it.
func note(s *snapshot.Snapshot, p snapshot.Probe, resource string, err error) {
	var refused apierrors.APIStatus
	switch {
	case err == nil:
		p.Code = 201
	case !errors.As(err, &refused), apierrors.IsAlreadyExists(err):
		return // nothing was learnt about the object
	case rightsOf(err):
		if s.Denial(snapshot.VerbCreate, resource, p.Namespace) == nil {
			s.Denied = append(s.Denied, snapshot.Denial{Verb: snapshot.VerbCreate, Resource: resource, Message: refusalMessage(err)})
		}
		return
	default:
		p.Code, p.Reason, p.Message = int(refused.Status().Code), string(refused.Status().Reason), refused.Status().Message
	}
	s.Probes = append(s.Probes, p)
}

// rightsOf reports whether a refusal is about the caller's own rights.
func rightsOf(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource")
}

// Object is one of the objects of a job that is about to be submitted, and the resource that it is created under.
type Object struct {
	*unstructured.Unstructured
	Resource schema.GroupVersionResource
}

// Rehearse tries whether the API server would accept a job that is not there yet, what is submitted with it, and one pod of
// each of its roles, and writes the answers into the snapshot. Nothing is stored. The job comes first. An object that exists, a
// namespace that does not, and a server that fails are errors; failed is the object whose create it was.
func Rehearse(ctx context.Context, client *kube.Client, s *snapshot.Snapshot, objects ...Object) (failed *Object, err error) {
	assumed := s.Clone()
	var whole *unstructured.Unstructured
	for i, o := range objects {
		if o.Resource.Empty() { // it is not created
			if err := assumed.PutUntyped(kinds.MadeFrom(whole, o.Unstructured)); err != nil {
				return nil, err
			}
			continue
		}
		options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
		accepted, err := client.Dynamic.Resource(o.Resource).Namespace(o.GetNamespace()).Create(ctx, o.Unstructured, options)
		if broken(err) {
			return &objects[i], err
		}
		note(s, snapshot.Probe{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}, o.Resource.GroupResource().String(), err)
		assume := o.DeepCopy()
		if err == nil {
			assume.SetUID(accepted.GetUID()) // that by which pods name their owner
		}
		if whole == nil {
			whole = assume
		}
		if err := assumed.PutUntyped(assume); err != nil {
			return nil, err
		}
	}
	job := objects[0]
	probePods(ctx, client, s, missing(assumed, view.Query{Kind: job.GroupVersionKind().GroupKind().String(), Namespace: job.GetNamespace(), Name: job.GetName()}))
	caller(ctx, client, s)
	return nil, nil
}

// broken reports whether an answer to a create shows nothing about the object: it exists, or its namespace does not, or the server
// could not be reached.
func broken(err error) bool {
	var answered apierrors.APIStatus
	if errors.As(err, &answered) && apierrors.IsNotFound(err) {
		details := answered.Status().Details
		return details != nil && details.Kind == "namespaces"
	}
	return err != nil && (answered == nil || apierrors.IsAlreadyExists(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err))
}
