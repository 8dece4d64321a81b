package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// Consumer is a job or a service, as a whole, that uses nodes.
type Consumer struct {
	// Group is that of its kind.
	Group, Kind, Namespace, Name string
	// Pods are its pods that use resources of nodes; of [View.Unplaced], those that use none yet.
	Pods []*corev1.Pod
	// Ends reports whether it completes without a user's action.
	Ends bool
	// DaemonSet pods stay whatever happens.
	DaemonSet bool
	// Deadline is when it ends: at the latest, where a limit is declared, or usually, where there are enough runs before it;
	// zero if unknown. Source is which.
	Deadline time.Time
	Source   string
	// Job is the job behind it, if it is one.
	Job *gang.Job
	// Whole is the consumer that it is a part of, see [Consumer.Part]; nil for a whole one. AnyOf reports that as many others of its pods would do as well.
	Whole *Consumer
	AnyOf bool
	// grouped is the highest priority that a PodGroup of its pods has; nil where none has one.
	grouped *int32
}

// String is NAMESPACE/NAME.
func (h *Consumer) String() string { return h.Namespace + "/" + h.Name }

// GroupKind is its kind with the API group.
func (h *Consumer) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: h.Group, Kind: h.Kind}
}

// Is reports whether it is the same job or service as another one, which may be of another view.
func (h *Consumer) Is(other *Consumer) bool {
	return h.Namespace == other.Namespace && h.Name == other.Name && h.GroupKind() == other.GroupKind()
}

// UIDs are those of its pods, as the simulation knows them.
func (h *Consumer) UIDs() []types.UID { return placement.PodIDs(h.Pods) }

// Leftover reports whether the pods outlive their job: it has ended, and nothing will end them. Parameter servers do that.
func (h *Consumer) Leftover() bool { return h.Job != nil && h.Job.End != nil && h.Job.LeftFor == 0 }

// Makes reports whether it is the application of a gang's pods, which no job owns: the gang is a part of it.
func (h *Consumer) Makes(g *gang.Gang) bool {
	m := g.Maker
	return m != nil && h.GroupKind() == m.Kind && h.Name == m.Name && h.Namespace == g.Meta.Namespace
}

// Keeps reports whether a pod stays whatever ends: the consumer does not, or leaves this pod when it does.
func (h *Consumer) Keeps(pod *corev1.Pod) bool {
	return !h.Ends || h.Job != nil && h.Job.Stays(pod)
}

// Left is how long after the end of the consumer one of some pods of it is deleted; 0 where all go with the end, or stay.
func (h *Consumer) Left(pods []*corev1.Pod) (longest time.Duration) {
	if h.Job == nil || h.Job.End != nil { // whose deadline has that already
		return 0
	}
	for _, pod := range pods {
		longest = max(longest, h.Job.Left(pod))
	}
	return longest
}

// Ending is the consumer with no more than the pods that go when it ends; nil if none does. Pods that are deleted with the job some time later are in it where they matter
// to who waits, and that is its end then: for devices those that have most of them, for anything else all.
func (h *Consumer) Ending(forDevices bool) *Consumer {
	at, later, part := []*corev1.Pod(nil), []*corev1.Pod(nil), *h
	for _, pod := range h.Pods {
		switch {
		case h.Keeps(pod):
		case h.Left([]*corev1.Pod{pod}) > 0:
			later = append(later, pod)
		default:
			at = append(at, pod)
		}
	}
	part.Pods = at
	if len(later) > 0 && (!forDevices || len(at) == 0 || devices(later) > devices(at)) {
		part.Pods = append(at, later...)
		if !part.Deadline.IsZero() {
			part.Deadline, part.Source = part.Deadline.Add(h.Left(later)), part.Source+" and its ttlSecondsAfterFinished"
		}
	}
	if len(part.Pods) == 0 {
		return nil
	}
	return &part
}

// devices is how many devices some pods request.
func devices(pods []*corev1.Pod) (sum int64) {
	for _, pod := range pods {
		sum += request.Devices(request.Of(pod))
	}
	return sum
}

// Total is the amount of one resource that its pods are charged.
func (h *Consumer) Total(name corev1.ResourceName) int64 {
	var n int64
	for _, p := range h.Pods {
		n += request.OfResource(p, name)
	}
	return n
}

// Priority is the highest priority among its pods and the PodGroups that they are in: a scheduler preempts it for a higher one than that.
func (h *Consumer) Priority() int32 {
	var highest int32
	for i, p := range h.Pods {
		if n := corev1helpers.PodPriority(p); i == 0 || n > highest {
			highest = n
		}
	}
	if h.grouped != nil {
		highest = max(highest, *h.grouped)
	}
	return highest
}

// inGroup takes the priority of the PodGroup that a pod is in, if it has one.
func (h *Consumer) inGroup(pod *corev1.Pod, groups groupIndex) {
	at := pod.Spec.SchedulingGroup
	if at == nil || at.PodGroupName == nil {
		return
	}
	d := groups.named[gang.Key{Dialect: gang.Native, Namespace: pod.Namespace, Name: *at.PodGroupName}]
	if d != nil && d.Priority != nil && (h.grouped == nil || *h.grouped < *d.Priority) {
		h.grouped = d.Priority
	}
}

// Consumers are all that use nodes, sorted by name.
func (w *View) Consumers() []*Consumer { return w.consumers().all }

// Includes reports whether a pod, which may use no node yet, is of the job or service that a consumer is.
func (w *View) Includes(h *Consumer, pod *corev1.Pod) bool {
	root := rootOf(pod, Once(w, ofOwners{}, w.owners))
	return h.GroupKind() == root.kind && h.Name == root.name && h.Namespace == pod.Namespace
}

// ConsumerOf is the consumer that a pod belongs to; nil if the pod consumes nothing.
func (w *View) ConsumerOf(pod *corev1.Pod) *Consumer { return w.consumers().of[pod] }

// consumerIndex is all consumers, and which of them each pod belongs to.
type consumerIndex struct {
	all []*Consumer
	of  map[*corev1.Pod]*Consumer
}

func (w *View) indexConsumers() consumerIndex {
	if w.sameConsumers() {
		return w.base.consumers()
	}
	return w.consumersOf(placement.Holds)
}

// Unplaced are the jobs and services of a namespace that have pods without a node, which a quota is charged for, each with these pods alone.
func (w *View) Unplaced(namespace string) []*Consumer {
	type unplaced struct{}
	return Once(w, unplaced{}, func() map[string][]*Consumer {
		in := map[string][]*Consumer{}
		for _, h := range w.consumersOf(func(p *corev1.Pod) bool { return p.Spec.NodeName == "" && !podutil.IsPodTerminal(p) }).all {
			in[h.Namespace] = append(in[h.Namespace], h)
		}
		return in
	})[namespace]
}

// consumersOf are the jobs and services behind pods that match.
func (w *View) consumersOf(match func(*corev1.Pod) bool) consumerIndex {
	type key struct {
		kind            schema.GroupKind
		namespace, name string
	}
	byKey := map[key]*Consumer{}
	x := consumerIndex{of: make(map[*corev1.Pod]*Consumer, len(w.Snap.Pods))}
	jobs := map[gang.Identity]*gang.Job{}
	for _, s := range w.Jobs() {
		jobs[gang.IdentityOf(&s.Meta)] = s
	}
	owners, groups := Once(w, ofOwners{}, w.owners), w.byKey()
	for _, pod := range w.Snap.Pods {
		if !match(pod) {
			continue
		}
		root := rootOf(pod, owners)
		if of, kept := w.holdsFor(pod, owners); kept {
			root = of
		} else if job := w.labelled(pod); job != nil {
			root = owner{kind: job.Kind.GroupKind(), name: job.Meta.Name, uid: job.Meta.UID}
		}
		at := key{root.kind, pod.Namespace, root.name}
		h := byKey[at]
		if h == nil {
			h = &Consumer{Group: root.kind.Group, Kind: root.kind.Kind, Namespace: pod.Namespace, Name: root.name, DaemonSet: placement.DaemonSetPod(pod), Job: jobs[gang.Identity{Namespace: pod.Namespace, UID: root.uid}]}
			h.Ends = endsSomeDay(root, pod) && !h.Leftover()
			byKey[at] = h
			x.all = append(x.all, h)
		}
		h.Pods = append(h.Pods, pod)
		h.inGroup(pod, groups)
		x.of[pod] = h
	}
	habits := w.habits()
	for _, h := range x.all {
		h.Deadline, h.Source = w.deadline(h, habits)
	}
	slices.SortFunc(x.all, func(a, b *Consumer) int {
		return cmp.Or(strings.Compare(a.String(), b.String()), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group))
	})
	return x
}

// endsSomeDay: jobs of every kind do, and so do pods of other owners, or of none, that are not restarted indefinitely; services do not.
func endsSomeDay(root owner, pod *corev1.Pod) bool {
	if isJob(root.kind) {
		return root.kind != ray.ClusterReader().GroupKind && root.kind != leaderworkerset.Reader().GroupKind // which serve until they are deleted
	}
	return strings.HasSuffix(root.kind.Kind, "Job") || pod.Spec.RestartPolicy == corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
}
