package collect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
)

const (
	// probeLimit is the time for one object, or the pods of one job, to be tried, unless --request-timeout allows more: a webhook
	// that does not answer has ten seconds by default, and then the API server reports it.
	probeLimit = 15 * time.Second
	// probeTries is how often an object is tried from which nothing is learnt, and probePause the time between.
	probeTries = 3
	probePause = 300 * time.Millisecond
)

// prober tries creates with dryRun=All, and writes the answers into a snapshot.
type prober struct {
	client       *kube.Client
	s            *snapshot.Snapshot
	limit, pause time.Duration
}

func newProber(client *kube.Client, s *snapshot.Snapshot) *prober {
	limit := probeLimit
	if client.Config != nil {
		limit = max(limit, client.Config.Timeout)
	}
	return &prober{client: client, s: s, limit: limit, pause: probePause}
}

// pods tries whether the API server accepts pods, one of each role that a job lacks: the refusal is read first-hand, not from
// an event. A webhook that reads the owner of a pod, as Kueue's does, does not find a job that is not there yet: then the pod is tried
// without. It returns the error of ctx alone: a pod from which nothing is learnt is a gap in the snapshot.
func (p *prober) pods(ctx context.Context, pods []*corev1.Pod) error {
	limited, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	for _, pod := range pods {
		create := func(pod *corev1.Pod) error {
			return p.try(limited, func() error {
				_, err := p.client.Typed.CoreV1().Pods(pod.Namespace).Create(limited, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			})
		}
		err := create(pod)
		if owner := metav1.GetControllerOf(pod); err != nil && owner != nil && strings.Contains(err.Error(), fmt.Sprintf("%q not found", owner.Name)) {
			orphan := pod.DeepCopy()
			orphan.OwnerReferences = nil
			err = create(orphan)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.note(snapshot.Probe{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}, corev1.SchemeGroupVersion.WithResource("pods"), err)
	}
	return nil
}

// try makes a create, again where the answer shows nothing of the object and there is time.
func (p *prober) try(ctx context.Context, create func() error) error {
	for n := 1; ; n++ {
		err := create()
		if !failure.OutcomeOf(err).Unseen() || n == probeTries || failure.Unauthenticated(err) || apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(p.pause):
		}
	}
}

// note records the API server's answer to a create of a resource. A refusal that is about the caller's own rights shows
// nothing of the object: others may create it.
func (p *prober) note(probe snapshot.Probe, resource schema.GroupVersionResource, err error) {
	name := resource.GroupResource().String()
	switch failure.OutcomeOf(err) {
	case failure.OutcomeAccepted:
		probe.Code = 201
	case failure.OutcomeRefused:
		refused := statusOf(err)
		probe.Code, probe.Reason, probe.Message = int(refused.Code), string(refused.Reason), refused.Message
	case failure.OutcomeNoRight:
		if p.s.Denial(snapshot.VerbCreate, name, probe.Namespace) == nil {
			p.s.Denied = append(p.s.Denied, snapshot.Denial{Verb: snapshot.VerbCreate, Resource: name, Message: refusalMessage(err)})
		}
		return
	case failure.OutcomeTaken:
		return // it was made in between: nothing is to be tried
	default: // the server failed, or a webhook takes no dry runs
		op := failure.Op{Verb: "create", Resource: resource, Kind: probe.Kind, Namespace: probe.Namespace, Name: probe.Name}
		p.s.Unanswered = append(p.s.Unanswered, snapshot.Unanswered{Kind: probe.Kind, Namespace: probe.Namespace, Name: probe.Name, Message: failure.From(op.Wrap(err)).Message})
		return
	}
	p.s.Probes = append(p.s.Probes, probe)
}

// Object is one of the objects of a job that is about to be submitted, and the resource that it is created under.
type Object struct {
	*unstructured.Unstructured
	Resource schema.GroupVersionResource
}

// Rehearse tries whether the API server would accept a job that is not there yet, what is submitted with it, and one pod of
// each of its roles, and writes the answers into the snapshot. Nothing is stored. The job comes first. An object that exists, a
// namespace that does not, and a server that fails are errors; failed is the object whose create it was. A server that fails only when it
// tries a pod is a gap in the snapshot.
func Rehearse(ctx context.Context, client *kube.Client, s *snapshot.Snapshot, objects ...Object) (failed *Object, err error) {
	return newProber(client, s).rehearse(ctx, objects)
}

func (p *prober) rehearse(ctx context.Context, objects []Object) (failed *Object, err error) {
	assumed := p.s.Clone()
	var whole *unstructured.Unstructured
	for i, o := range objects {
		if o.Resource.Empty() { // it is not created
			if err := assumed.PutUntyped(kinds.MadeFrom(whole, o.Unstructured)); err != nil {
				return nil, err
			}
			continue
		}
		accepted, err := p.object(ctx, o)
		if outcome := failure.OutcomeOf(err); outcome.Unseen() || outcome == failure.OutcomeTaken {
			return &objects[i], err
		}
		p.note(snapshot.Probe{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}, o.Resource, err)
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
	err = p.pods(ctx, missing(assumed, view.Query{Kind: job.GroupVersionKind().GroupKind().String(), Namespace: job.GetNamespace(), Name: job.GetName()}))
	if err != nil {
		return nil, err
	}
	caller(ctx, p.client, p.s)
	return nil, nil
}

// object tries one object that is submitted.
func (p *prober) object(ctx context.Context, o Object) (accepted *unstructured.Unstructured, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
	err = p.try(ctx, func() (err error) {
		accepted, err = p.client.Dynamic.Resource(o.Resource).Namespace(o.GetNamespace()).Create(ctx, o.Unstructured, options)
		return err
	})
	return accepted, err
}

// statusOf is the status that the API server answered; nil where it did not.
func statusOf(err error) *metav1.Status {
	var answered apierrors.APIStatus
	if !errors.As(err, &answered) || answered.Status().Code < http.StatusBadRequest {
		return nil
	}
	status := answered.Status()
	return &status
}
