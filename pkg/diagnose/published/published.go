// Package published is the form in which a scheduler leaves the answer to "why is my gang pending?" where anybody who may
// read the job's events finds it with one GET: an Event of a known name, with the answer in an annotation. Its note is the
// first line of the answer, for those who use kubectl describe.
package published

import (
	"cmp"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

// Annotation holds the answer as JSON, in the version that answer.APIVersion names.
const Annotation = "gangctl.dev/why-pending"

// noteLimit is how much text the API takes in an event, in bytes.
const noteLimit = 1024

// ErrNone means that an event carries no answer.
var ErrNone = errors.New("no published answer")

// EventName is the name of the event for the job (or, for a gang without a job, the group object) of this uid.
func EventName(uid types.UID) string { return "why-pending." + string(uid) }

// Put writes the answer into the event, which has its name and namespace, and signs it. Without a key it writes only the note.
func Put(e *corev1.Event, a *answer.Answer, key ed25519.PrivateKey) error {
	e.Message = phrase.Shorten(phrase.Plain(a.Line()), noteLimit)
	if key == nil {
		return nil
	}
	brief := *a
	if a.Nodes != nil {
		brief.Nodes = briefly(*a.Nodes)
	}
	if a.Primary != nil {
		brief.Primary = new(shortened(*a.Primary))
	}
	brief.AlsoBlocking = slices.Clone(a.AlsoBlocking)
	for i, f := range brief.AlsoBlocking {
		brief.AlsoBlocking[i] = shortened(f)
	}
	raw, err := json.Marshal(&brief)
	if err != nil {
		return fmt.Errorf("publish answer for %s/%s: %w", a.Job.Namespace, a.Job.Name, err)
	}
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[Annotation] = string(raw)
	sign(e, key)
	return nil
}

// briefly leaves out the rows, most names, and all but the largest groups: a list of every node is what makes an answer large.
func briefly(nodes answer.Nodes) *answer.Nodes {
	nodes.Rows = nil
	nodes.Excluded = largest(nodes.Excluded, func(x answer.Excluded) int { return x.Rejects })
	for i, x := range nodes.Excluded {
		nodes.Excluded[i].Nodes = x.Nodes[:min(len(x.Nodes), answer.PublishedNodes)]
	}
	nodes.Slots = largest(nodes.Slots, func(s answer.Slot) int { return s.Count })
	for i, s := range nodes.Slots {
		nodes.Slots[i].Nodes = s.Nodes[:min(len(s.Nodes), answer.PublishedNodes)]
	}
	return &nodes
}

// shortened is a finding with the first names alone of facts that are many, and how many there are: of nodes also nodesCount.
func shortened(f answer.Finding) answer.Finding {
	f.Facts = maps.Clone(f.Facts)
	for _, key := range slices.Sorted(maps.Keys(f.Facts)) {
		if names, ok := f.Facts[key].([]string); ok && len(names) > answer.PublishedNodes {
			f.Facts[key], f.Facts[key+"Count"] = names[:answer.PublishedNodes], len(names)
		}
	}
	return f
}

// largest returns the largest groups, the largest first where some are left out.
func largest[T any](groups []T, size func(T) int) []T {
	groups = slices.Clone(groups)
	if len(groups) <= answer.PublishedNodes {
		return groups
	}
	slices.SortStableFunc(groups, func(a, b T) int { return cmp.Compare(size(b), size(a)) })
	return groups[:answer.PublishedNodes]
}

// Carries reports whether an event has an answer, of whomever: an answer that was taken back leaves the event.
func Carries(e *corev1.Event) bool {
	_, ok := e.Annotations[Annotation]
	return ok
}

// Get reads the answer of an event. The error is ErrNone where there is none, or the reason why it cannot be read: it may be of a
// version to come, or [ErrForged].
func Get(e *corev1.Event, key ed25519.PublicKey) (*answer.Answer, error) {
	if !Carries(e) {
		return nil, ErrNone
	}
	if !isSigned(e, key) {
		return nil, fmt.Errorf("read answer in event %s/%s: %w", e.Namespace, e.Name, ErrForged)
	}
	var a answer.Answer
	if err := json.Unmarshal([]byte(e.Annotations[Annotation]), &a); err != nil {
		return nil, fmt.Errorf("read answer in event %s/%s: %w", e.Namespace, e.Name, err)
	}
	if a.APIVersion != answer.APIVersion {
		return nil, fmt.Errorf("read answer in event %s/%s: version %q, want %s", e.Namespace, e.Name, a.APIVersion, answer.APIVersion)
	}
	if a.Snapshot.At == nil {
		return nil, fmt.Errorf("read answer in event %s/%s: it has no time", e.Namespace, e.Name)
	}
	return &a, nil
}

// Same reports whether two answers are the same to a reader, whatever time has passed in between.
func Same(a, b *answer.Answer) bool {
	// As text, because quantities that are equal may differ as values.
	before, err := json.Marshal(gist(a))
	if err != nil {
		return false
	}
	after, err := json.Marshal(gist(b))
	return err == nil && string(before) == string(after)
}

// gist is the content of an answer without its sentences, which contain ages.
func gist(a *answer.Answer) []any {
	fields := []any{a.Job.UID, a.Job.Generation, a.Verdict, a.Who, a.Never, a.Gang, a.Ahead, a.Holding.GPUs}
	if a.Primary != nil {
		fields = append(fields, a.Primary.Code)
	}
	for _, f := range a.AlsoBlocking {
		fields = append(fields, f.Code, f.Verdict)
	}
	for _, u := range a.Unblock {
		fields = append(fields, u.Kind, u.Change, u.By, u.Command, u.Nodes)
	}
	return fields
}

// Alive reports whether the scheduler whose lease this is still works: an answer is worth only as much as its author's
// presence, who takes it back when it becomes wrong.
func Alive(lease *coordinationv1.Lease, now time.Time) bool {
	spec := lease.Spec
	if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil || spec.HolderIdentity == nil || *spec.HolderIdentity == "" {
		return false
	}
	return now.Sub(spec.RenewTime.Time) < 2*time.Duration(*spec.LeaseDurationSeconds)*time.Second
}
