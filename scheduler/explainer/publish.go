package explainer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/published"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Publisher writes answers as events.
type Publisher struct {
	Events coreclient.EventsGetter
	// Regarding refers to what users look at: the gang's object, or one of its
	// pods in a dialect without objects; nil where there is neither any more.
	Regarding func(gang.Key) *corev1.ObjectReference
	// Component and Instance say who speaks.
	Component, Instance string
}

// Publish implements [Explainer.Publish]. It makes one write: the event is
// created, or the one that is there is changed.
func (p *Publisher) Publish(ctx context.Context, key gang.Key, a *answer.Answer) error {
	subject := p.Regarding(key)
	if subject == nil {
		return nil
	}
	now := metav1.NowMicro()
	if a.Snapshot.At != nil {
		now = metav1.NewMicroTime(*a.Snapshot.At)
	}
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: key.Namespace, Name: nameOf(key, a)},
		InvolvedObject: *subject,
		Type:           kindOf(a), Reason: reasonOf(a), Action: "Explaining",
		EventTime: now, FirstTimestamp: metav1.NewTime(now.Time), LastTimestamp: metav1.NewTime(now.Time), Count: 1,
		ReportingController: p.Component, ReportingInstance: p.Instance,
	}
	if err := published.Put(e, a); err != nil {
		return err
	}
	if a.Verdict == answer.Running {
		delete(e.Annotations, published.Annotation)
	}
	_, err := p.Events.Events(key.Namespace).Create(ctx, e, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = p.change(ctx, e)
	}
	// A namespace that is being deleted takes no events, and nobody will ask.
	if err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("publish why gang %s waits: %w", key, err)
	}
	return nil
}

// change brings the event that is there to what e says.
func (p *Publisher) change(ctx context.Context, e *corev1.Event) error {
	var answer any // null takes it away
	if text, ok := e.Annotations[published.Annotation]; ok {
		answer = text
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{published.Annotation: answer}},
		"message":  e.Message, "type": e.Type, "reason": e.Reason, "lastTimestamp": e.LastTimestamp,
	})
	if err != nil {
		return err
	}
	_, err = p.Events.Events(e.Namespace).Patch(ctx, e.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// nameOf is by the job, which is what users ask about; pods that no job owns are
// found by their gang.
func nameOf(key gang.Key, a *answer.Answer) string {
	// Pods without an owner have a made-up UID, which is no part of a name.
	if a.Job.UID != "" && !strings.Contains(a.Job.UID, "/") {
		return published.EventName(types.UID(a.Job.UID))
	}
	return published.EventName(types.UID(strings.ToLower(string(key.Dialect) + "." + key.Name)))
}

func kindOf(a *answer.Answer) string {
	switch a.Verdict {
	case answer.Running, answer.Done, answer.FitsNow, answer.Starting, answer.Waiting:
		return corev1.EventTypeNormal
	default:
		return corev1.EventTypeWarning
	}
}

// reasonOf is the code of the first finding, which is stable and documented, as
// events want it: in camel case.
func reasonOf(a *answer.Answer) string {
	code := string(a.Verdict)
	if a.Primary != nil {
		code = string(a.Primary.Code)
	}
	var reason strings.Builder
	for _, word := range strings.Split(code, "_") {
		if word != "" {
			reason.WriteString(word[:1] + strings.ToLower(word[1:]))
		}
	}
	return "Gang" + reason.String()
}
