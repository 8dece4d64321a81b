package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/scheduler/outcome"
)

const (
	// statusWriters is how many statuses of pods are written at once, each of another namespace.
	statusWriters = 16
	// statusTimeout is how long the API server may take to answer one.
	statusTimeout = 30 * time.Second
	// A namespace pauses after a status that took longer than slowStatus, for pauseFactor times as long, up to maxPause: the API server computes it.
	slowStatus  = 500 * time.Millisecond
	pauseFactor = 4
	maxPause    = 10 * time.Second
	// It pauses after the status of a pod larger than largePod, too: for a second if it is that large, four seconds if it is twice as large, and so on
	// up to maxLargePause. The API server sends the whole pod to all who watch pods, before what happens to others' pods: one twice as large has
	// twice as many of them wait, twice as long.
	largePod      = 64 << 10
	maxLargePause = time.Minute
	// While bindings wait to be sent, the first status of a pod is held, for up to maxHold. It is looked at every holdCheck.
	maxHold   = priorityTime
	holdCheck = 100 * time.Millisecond
)

// PodStatusWriter writes the engine's statuses of pods while the engine goes on.
//
// The engine reports on each pod that it cannot place, and waits for the answer before it takes the next gang. The API server takes seconds
// for a pod with thousands of resources, so that one tenant's pods would keep the gangs of all others from their places. Here a status is
// queued, and one request at a time is under way for each namespace: who writes such pods waits for them alone.
//
// In a burst, gangs come before what is reported of those that found no room: see maxHold. Only the first status of a pod is held. The engine compares later
// ones with what the API server has, and writes none that is the same: one that is held would outlive the reason for it. Those that wait for something else
// are dropped by the next report: see Follow. Nominations are not held, as others have to see them.
//
// Requests about one pod keep their order. A binding drops what is queued for its pod, which is out of date, and waits for the request that is
// under way, so that no pod with a node is reported as one without.
type PodStatusWriter struct {
	namespaces workqueue.TypedRateLimitingInterface[string] // those with statuses to write; no two writers are given the same one
	pod        func(namespace, name string) (*corev1.Pod, bool)
	busy       func() bool
	clock      clock.WithDelayedExecution

	mu      sync.Mutex
	pending map[string]*pendingStatuses
	writing map[types.NamespacedName]*statusRequest
	pauses  map[string]time.Time // by namespace: when the pause after its last status ends
}

// pendingStatuses are those of a namespace.
type pendingStatuses struct {
	// order and held are pods, the oldest first, whose statuses are to be written at once, and when no binding waits. Those that are not in pods have
	// none any more.
	order, held []string
	pods        map[string]*podStatuses
	heldSince   time.Time // when the first was
}

// podStatuses are those of a pod, in the order in which they are to be written.
type podStatuses struct {
	patches []statusPatch
	held    bool
}

// statusRequest is one that is under way.
type statusRequest struct {
	answered chan struct{} // closed when it is
	dropped  bool          // it is not sent again
	reports  bool          // it has whether the pod is scheduled, and perhaps a node that it is nominated for
	// superseded: the pod was reported on since, and what of it is a report is not sent again. Then outdated is called when it is answered, unless it is nil.
	superseded bool
	outdated   func()
}

// statusPatch is a patch of a pod's status.
type statusPatch struct {
	uid    types.UID                  // of the pod; empty if it is not known
	seen   bool                       // it is to be written to the version of the pod that it has, and to no later one
	data   map[string]json.RawMessage // by field of the pod
	fields sets.Set[string]           // of its status
	write  func(ctx context.Context, data []byte) (*corev1.Pod, error)
}

// NewPodStatusWriter returns a writer, which queues until it runs. Pod returns the pod that has a name now, if it is known: the status of one pod is not
// written to another of its name. Busy reports whether bindings wait to be sent.
func NewPodStatusWriter(pod func(namespace, name string) (*corev1.Pod, bool), busy func() bool, clock clock.WithDelayedExecution) *PodStatusWriter {
	return &PodStatusWriter{
		namespaces: NewRetryQueue(func(namespace string) string { return namespace }), pod: pod, busy: busy, clock: clock,
		pending: map[string]*pendingStatuses{}, writing: map[types.NamespacedName]*statusRequest{}, pauses: map[string]time.Time{},
	}
}

// Run writes until ctx ends.
func (w *PodStatusWriter) Run(ctx context.Context) {
	var writers sync.WaitGroup
	for range statusWriters {
		writers.Go(func() { w.work(ctx) })
	}
	<-ctx.Done()
	w.namespaces.ShutDown()
	writers.Wait()
}

func (w *PodStatusWriter) work(ctx context.Context) {
	for {
		namespace, shutdown := w.namespaces.Get()
		if shutdown {
			return
		}
		if rest := w.rest(namespace); rest > 0 {
			w.namespaces.AddAfter(namespace, rest)
		} else {
			w.next(ctx, namespace)
		}
		w.namespaces.Done(namespace)
	}
}

// next writes the next status of a namespace, and adds the namespace again, after the others, if it has more.
func (w *PodStatusWriter) next(ctx context.Context, namespace string) {
	name, patches, more := w.take(namespace)
	if patches == nil && more {
		w.namespaces.AddAfter(namespace, holdCheck)
		return
	}
	start, sent := w.clock.Now(), 0
	failed := slices.DeleteFunc(patches, func(patch statusPatch) bool {
		size, done := w.write(ctx, namespace, name, patch)
		sent += size
		return done
	})
	w.written(namespace, name, failed)
	if len(failed) > 0 {
		w.namespaces.AddRateLimited(namespace)
		return
	}
	w.pause(namespace, pauseAfter(w.clock.Since(start), sent))
	w.namespaces.Forget(namespace)
	if more {
		w.namespaces.Add(namespace)
	}
}

// pauseAfter is how long a namespace pauses after a status that took so long, of a pod of so many bytes.
func pauseAfter(took time.Duration, size int) (pause time.Duration) {
	if took > slowStatus {
		pause = min(pauseFactor*took, maxPause)
	}
	if size > largePod {
		times := float64(size) / largePod
		pause = max(pause, min(time.Duration(times*times*float64(time.Second)), maxLargePause))
	}
	return pause
}

// pause has a namespace pause. Namespaces whose pauses are over may have nothing more to write.
func (w *PodStatusWriter) pause(namespace string, pause time.Duration) {
	if pause <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	maps.DeleteFunc(w.pauses, func(_ string, ends time.Time) bool { return !ends.After(now) })
	w.pauses[namespace] = now.Add(pause)
}

// rest is how much longer a namespace pauses; zero without a pause.
func (w *PodStatusWriter) rest(namespace string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := w.pauses[namespace].Sub(w.clock.Now())
	if rest <= 0 {
		delete(w.pauses, namespace)
		return 0
	}
	return rest
}

// holding reports whether what is held of a namespace is to be held still. The lock must be held.
func (w *PodStatusWriter) holding(pending *pendingStatuses) bool {
	return len(pending.held) > 0 && w.clock.Since(pending.heldSince) < maxHold && w.busy()
}

// next returns the next pod that has statuses which are not held, and takes them.
func (p *pendingStatuses) next() (name string, patches []statusPatch) {
	for len(p.order) > 0 {
		name, p.order = p.order[0], p.order[1:]
		if of := p.pods[name]; of != nil && !of.held {
			if delete(p.pods, name); len(of.patches) > 0 {
				return name, of.patches
			}
		}
	}
	return "", nil
}

// release ends the hold: what was held comes after what was not.
func (p *pendingStatuses) release() {
	for _, name := range p.held {
		if of := p.pods[name]; of != nil && of.held {
			of.held = false
			p.order = append(p.order, name)
		}
	}
	p.held = nil
}

// write sends a patch, and returns how many bytes the pod has, and whether the patch is not to be sent again.
func (w *PodStatusWriter) write(ctx context.Context, namespace, name string, patch statusPatch) (size int, done bool) {
	data, err := json.Marshal(patch.data)
	var pod *corev1.Pod
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, statusTimeout)
		defer cancel()
		pod, err = patch.write(limited, data)
	}
	switch {
	case err == nil:
		return pod.Size(), true
	case apierrors.IsNotFound(err), outcome.Replaced(err): // the pod is gone, or it is another one of that name
		return 0, true
	case apierrors.IsConflict(err) && patch.seen: // whoever wants it looks at the pod again
		return 0, true
	case outcome.Transient(err), apierrors.IsConflict(err): // others have changed the pod meanwhile
		return 0, false
	}
	klog.FromContext(ctx).Error(err, "Cannot write the status of a pod", "pod", klog.KRef(namespace, name))
	return 0, true
}

// take returns the patches of the pod of a namespace that has waited longest, and whether others wait: without patches, those that do are held. They count
// as being written until written is called.
func (w *PodStatusWriter) take(namespace string) (name string, patches []statusPatch, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pending := w.pending[namespace]
	if pending == nil {
		return "", nil, false
	}
	if !w.holding(pending) {
		pending.release()
	}
	name, patches = pending.next()
	if len(pending.pods) == 0 {
		delete(w.pending, namespace)
	}
	if patches != nil {
		w.writing[types.NamespacedName{Namespace: namespace, Name: name}] = &statusRequest{
			answered: make(chan struct{}), reports: slices.ContainsFunc(patches, statusPatch.reports),
		}
	}
	return name, patches, len(pending.pods) > 0
}

// written records that the request about a pod is answered. The patches that failed are queued again, before those that came since.
func (w *PodStatusWriter) written(namespace, name string, failed []statusPatch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pod := types.NamespacedName{Namespace: namespace, Name: name}
	request, ok := w.writing[pod]
	if !ok {
		return // there was nothing to write
	}
	close(request.answered)
	delete(w.writing, pod)
	if request.superseded {
		failed = slices.DeleteFunc(failed, statusPatch.reportsOnly)
	}
	if request.outdated != nil {
		request.outdated()
	}
	if len(failed) == 0 || request.dropped {
		return
	}
	queued := w.of(namespace).of(name, false, w.clock.Now())
	later := queued.patches
	queued.patches = failed
	for _, patch := range later {
		queued.add(patch)
	}
}

// add queues a patch, which may be held while bindings wait: unless one of the pod is under way, as it is not known then what the next one is compared with.
func (w *PodStatusWriter) add(namespace, name string, patch statusPatch, mayWait bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := mayWait && w.writing[types.NamespacedName{Namespace: namespace, Name: name}] == nil && w.busy()
	w.of(namespace).of(name, held, w.clock.Now()).add(patch)
	w.namespaces.Add(namespace)
}

// of returns what is queued of a namespace. The lock must be held.
func (w *PodStatusWriter) of(namespace string) *pendingStatuses {
	pending := w.pending[namespace]
	if pending == nil {
		pending = &pendingStatuses{pods: map[string]*podStatuses{}}
		w.pending[namespace] = pending
	}
	return pending
}

// of returns what is queued of a pod, which has its place in the queue now. What is not to be held is not held by what is there.
func (p *pendingStatuses) of(name string, held bool, now time.Time) *podStatuses {
	pod := p.pods[name]
	switch {
	case pod == nil:
		pod = &podStatuses{held: held}
		p.pods[name] = pod
	case !pod.held || held:
		return pod
	}
	if pod.held = held; !held {
		p.order = append(p.order, name)
		return pod
	}
	if len(p.held) == 0 {
		p.heldSince = now
	}
	p.held = append(p.held, name)
	return pod
}

// add appends a patch. It replaces those that wait for the same pod and have no field that it has not. Another pod may have had the name before, and what is
// reported of that last must not take the place of what is queued of its successor.
func (p *podStatuses) add(patch statusPatch) {
	earlier := slices.DeleteFunc(p.patches, func(e statusPatch) bool { return e.uid == patch.uid && patch.fields.IsSuperset(e.fields) })
	p.patches = append(earlier, patch)
}

// drop removes what is queued for a pod, and waits for the request that is under way.
func (w *PodStatusWriter) drop(ctx context.Context, namespace, name string) error {
	w.mu.Lock()
	if pending := w.pending[namespace]; pending != nil {
		if delete(pending.pods, name); len(pending.pods) == 0 {
			delete(w.pending, namespace)
		}
	}
	request := w.writing[types.NamespacedName{Namespace: namespace, Name: name}]
	if request != nil {
		request.dropped = true
	}
	w.mu.Unlock()
	if request == nil {
		return nil
	}
	select {
	case <-request.answered:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the status of pod %s/%s to be written: %w", namespace, name, context.Cause(ctx))
	}
}

// Client wraps a clientset: patches of the status of pods are queued, and succeed at once.
func (w *PodStatusWriter) Client(client kubernetes.Interface) kubernetes.Interface {
	return withPods(client, func(namespace string, pods typedcorev1.PodInterface) typedcorev1.PodInterface {
		return &podStatusPods{PodInterface: pods, writer: w, namespace: namespace}
	})
}

type podStatusPods struct {
	typedcorev1.PodInterface
	writer    *PodStatusWriter
	namespace string
}

// Patch implements typedcorev1.PodInterface. What is queued is whether a pod is scheduled, and the node that it is nominated for. The pod that is
// returned for it is empty: the engine reads none.
func (p *podStatusPods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	if !slices.Equal(subresources, []string{"status"}) || kind != types.StrategicMergePatchType || len(options.DryRun) > 0 {
		return p.PodInterface.Patch(ctx, name, kind, data, options, subresources...)
	}
	var whole, status map[string]json.RawMessage
	var conditions []map[string]json.RawMessage
	err := json.Unmarshal(data, &whole)
	if err == nil && whole["status"] != nil {
		err = json.Unmarshal(whole["status"], &status)
	}
	if err == nil && status["conditions"] != nil {
		err = json.Unmarshal(status["conditions"], &conditions)
	}
	if err == nil && makePlain(conditions) {
		if status["conditions"], err = json.Marshal(conditions); err == nil {
			whole["status"], err = json.Marshal(status)
		}
		if err == nil {
			data, err = json.Marshal(whole)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the patch of the status of pod %s/%s: %w", p.namespace, name, err)
	}
	for _, condition := range conditions {
		if textOf(condition["type"]) != string(corev1.PodScheduled) { // a victim of preemption has its condition before it is deleted
			return p.PodInterface.Patch(ctx, name, kind, data, options, subresources...)
		}
	}
	pod, known := p.writer.pod(p.namespace, name)
	if known && whole["metadata"] == nil { // it may have the UID of the pod that it is about
		whole["metadata"] = fmt.Appendf(nil, `{"uid":%q}`, pod.UID)
	}
	_, nominates := status["nominatedNodeName"]
	of := identityIn(whole["metadata"])
	p.writer.add(p.namespace, name, statusPatch{
		uid: ptr.Deref(of.UID, ""), seen: of.ResourceVersion != nil, data: whole, fields: sets.KeySet(status),
		write: func(ctx context.Context, data []byte) (*corev1.Pod, error) {
			return p.PodInterface.Patch(ctx, name, kind, data, options, subresources...)
		},
	}, known && !nominates && isNew(pod))
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}}, nil
}

// makePlain removes control characters from the messages of conditions, of which a part may be what users wrote. It reports whether there were any.
func makePlain(conditions []map[string]json.RawMessage) (changed bool) {
	for _, condition := range conditions {
		message := textOf(condition["message"])
		plain := phrase.Plain(message)
		if plain == message {
			continue
		}
		if text, err := json.Marshal(plain); err == nil { // texts have an encoding
			condition["message"], changed = text, true
		}
	}
	return changed
}

// textOf is a text in JSON; empty for what is none.
func textOf(raw json.RawMessage) (text string) {
	if len(raw) == 0 || json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return text
}

// identityIn is the UID, and the version, that the metadata of a patch have; empty where they have none.
func identityIn(metadata json.RawMessage) (of metav1.Preconditions) {
	if len(metadata) == 0 || json.Unmarshal(metadata, &of) != nil {
		return metav1.Preconditions{}
	}
	return of
}

// isNew reports whether no scheduler has reported on a pod. The API server reports that one has gates.
func isNew(pod *corev1.Pod) bool {
	_, condition := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
	return condition == nil || condition.Reason == corev1.PodReasonSchedulingGated
}

// Bind implements typedcorev1.PodExpansion.
func (p *podStatusPods) Bind(ctx context.Context, binding *corev1.Binding, options metav1.CreateOptions) error {
	if err := p.writer.drop(ctx, p.namespace, binding.Name); err != nil {
		return err
	}
	return p.PodInterface.Bind(ctx, binding, options)
}
