package explainer

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/published"
	"github.com/gangctl/gangctl/pkg/gang"
)

// gangAnnotation names the gang that an answer is about, by its dialect and name.
const gangAnnotation = "gangctl.dev/gang"

// page is the number of events of one list request. Whoever may write events may claim this component, and an event may have more than
// a MiB: a page is what is in memory at once.
const page = 50

// Publisher writes answers as events.
type Publisher struct {
	Events coreclient.EventsGetter
	// Regarding refers to what users look at: the gang's object, or one of its
	// pods in a dialect without objects; nil where there is neither any more.
	Regarding func(gang.Key) *corev1.ObjectReference
	// Component and Instance identify the reporter.
	Component, Instance string
	// Key returns the key with which answers are signed.
	Key func(context.Context) (ed25519.PrivateKey, error)
}

// Publish implements [Config.Publish]. It makes one write: the event is
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
	var private ed25519.PrivateKey
	if a.Verdict != answer.Running {
		private, _ = p.Key(ctx) // it reports itself what is wrong; without it there is the note for kubectl describe
	}
	if err := published.Put(e, a, private); err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(&e.ObjectMeta, gangAnnotation, key.VirtualName())
	_, err := p.Events.Events(key.Namespace).Create(ctx, e, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = p.change(ctx, e)
	}
	// A namespace that is being deleted takes no events, and has no users any more.
	if err != nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("publish why gang %s waits: %w", key, err)
	}
	return nil
}

// change patches the event of that name to be e.
func (p *Publisher) change(ctx context.Context, e *corev1.Event) error {
	annotations := map[string]any{published.Annotation: nil, published.SignatureAnnotation: nil} // null removes it
	for name, value := range e.Annotations {
		annotations[name] = value
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": annotations},
		"message":  e.Message, "type": e.Type, "reason": e.Reason, "lastTimestamp": e.LastTimestamp,
	})
	if err != nil {
		return err
	}
	_, err = p.Events.Events(e.Namespace).Patch(ctx, e.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Published implements [Config.Published]. Answers that cannot be decoded are of
// another version, and those that are not signed are not the scheduler's: both are
// left alone.
func (p *Publisher) Published(ctx context.Context) (map[gang.Key]*answer.Answer, error) {
	private, err := p.Key(ctx)
	if err != nil {
		return nil, fmt.Errorf("list published answers: %w", err)
	}
	public, _ := private.Public().(ed25519.PublicKey)
	var found map[gang.Key]*answer.Answer
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("reportingComponent", p.Component).String(), Limit: page}
	err = paging.Each(ctx, options, p.Events.Events(metav1.NamespaceAll).List, func() { found = map[gang.Key]*answer.Answer{} }, func(events *corev1.EventList) {
		for i := range events.Items {
			e := &events.Items[i]
			key, err := gang.ParseVirtualName(e.Namespace, e.Annotations[gangAnnotation])
			if err != nil || e.ReportingController != p.Component {
				continue
			}
			if a, err := published.Get(e, public); err == nil {
				found[key] = a
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list published answers: %w", err)
	}
	return found, nil
}

// nameOf returns the name of the event: by the job, which is what users query; by the
// gang for pods that no job owns, and for a job of several gangs.
func nameOf(key gang.Key, a *answer.Answer) string {
	// Pods without an owner have a made-up UID, which is no part of a name.
	if a.Job.UID != "" && a.Gang.Replica == nil && !strings.Contains(a.Job.UID, "/") {
		return published.EventName(types.UID(a.Job.UID))
	}
	name := published.EventName(types.UID(strings.ToLower(string(key.Dialect) + "." + key.Name)))
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		// Labels and annotations that name gangs take more than names of objects do.
		sum := sha256.Sum256([]byte(key.String()))
		return published.EventName(types.UID("gang-" + hex.EncodeToString(sum[:16])))
	}
	return name
}

func kindOf(a *answer.Answer) string {
	switch a.Verdict {
	case answer.Running, answer.Done, answer.FitsNow, answer.Starting, answer.Waiting:
		return corev1.EventTypeNormal
	default:
		return corev1.EventTypeWarning
	}
}

// reasonOf returns the code of the first finding, which is stable and documented, in
// the camel case of event reasons.
func reasonOf(a *answer.Answer) string {
	code := string(a.Verdict)
	if a.Primary != nil {
		code = string(a.Primary.Code)
	}
	var reason strings.Builder
	for _, part := range strings.Split(code, "_") {
		if part != "" {
			reason.WriteString(part[:1] + strings.ToLower(part[1:]))
		}
	}
	return "Gang" + reason.String()
}
