package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// awayAfter is how long the kubelet of a node may not report before its pods are not expected to end any more: as long as Kubernetes leaves pods on such a node.
const awayAfter = 5 * time.Minute

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

// Stuck reports whether a pod that is being deleted does not go by itself: it is long past its grace period, or the kubelet of its node has not reported for long, and
// only that can confirm that it has ended.
func (w *View) Stuck(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && (gang.Overdue(p, w.Now) || w.away().Has(p.Spec.NodeName))
}

// away are the nodes whose kubelets have not reported for long. Pods that are being deleted there stay until they do, unless an administrator has declared the node to
// be out of service: then Kubernetes removes them.
func (w *View) away() sets.Set[string] {
	type awayNodes struct{}
	return Once(w, awayNodes{}, func() sets.Set[string] {
		away := sets.New[string]()
		for _, n := range w.Snap.Nodes {
			down := placement.NotReadyCondition(n)
			silent := down != nil && down.Status == corev1.ConditionUnknown
			served := !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
			if silent && served && w.Age(placement.ReadyChangedAt(n)) > awayAfter {
				away.Insert(n.Name)
			}
		}
		return away
	})
}

// StuckJob reports whether a Job of Kubernetes should have been gone for long: that which is deleted with its pods goes after them.
func (w *View) StuckJob(j *batchv1.Job) bool {
	if j.DeletionTimestamp == nil {
		return false
	}
	last := j.DeletionTimestamp.Time
	for _, p := range w.PodsOfJob(j) {
		if w.Stuck(p) {
			return true
		}
		if p.DeletionTimestamp != nil {
			last = Later(last, p.DeletionTimestamp.Time)
		}
	}
	return w.Age(last) > gang.StuckAfter
}

// PodsOfJob are the pods of a Job of Kubernetes.
func (w *View) PodsOfJob(j *batchv1.Job) []*corev1.Pod {
	return w.byController().of(gang.IdentityOf(j))
}

// DeletionRequested is when the deletion of a pod was requested: its timestamp is when the grace period ends.
func DeletionRequested(p *corev1.Pod) time.Time {
	at := p.DeletionTimestamp.Time
	if grace := p.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

// Going reports whether every pod of a consumer is being deleted and none is stuck.
func (w *View) Going(h *Consumer) bool {
	return !slices.ContainsFunc(h.Pods, func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil || w.Stuck(p) })
}

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

func (w *View) indexConsumers() consumerIndex { return w.consumersOf(placement.Holds) }

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
		h.Deadline, h.Source = deadline(h, w.Now)
		if limit, source := w.executionLimit(h); !limit.IsZero() && (h.Deadline.IsZero() || limit.Before(h.Deadline)) {
			h.Deadline, h.Source = limit, source
		}
		if h.Deadline.IsZero() && h.Job != nil && len(habits) > 0 {
			h.Deadline, h.Source = habits[family(h.Job)].expect(h.Job, w.Now)
		}
	}
	slices.SortFunc(x.all, func(a, b *Consumer) int {
		return cmp.Or(strings.Compare(a.String(), b.String()), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Group, b.Group))
	})
	return x
}

// owner is an object in a chain of controllers.
type owner struct {
	kind  schema.GroupKind
	name  string
	uid   types.UID
	above *metav1.OwnerReference
}

// owners are the objects that stand between pods and what people call a job or a service.
func (w *View) owners() map[gang.Identity]owner {
	m := map[gang.Identity]owner{}
	add := func(kind schema.GroupKind, obj metav1.Object) {
		if above := metav1.GetControllerOf(obj); above != nil {
			m[gang.IdentityOf(obj)] = owner{name: obj.GetName(), uid: obj.GetUID(), kind: kind, above: above}
		}
	}
	for _, o := range w.Snap.ReplicaSets {
		add(replicaSet(), o)
	}
	for _, o := range w.Snap.Deployments {
		add(deployment(), o)
	}
	for _, o := range w.Snap.StatefulSets {
		add(statefulSet(), o)
	}
	for _, o := range w.Snap.Jobs {
		add(batchjob.GroupKind(), o)
	}
	for _, o := range w.makingPods() {
		add(podKind(), o)
	}
	for kind, list := range w.Snap.Custom {
		for _, u := range list {
			if !declares(kind) {
				add(kind, u)
			}
		}
	}
	return m
}

// declares reports whether objects of a kind only declare a gang, or let it wait: none has pods.
func declares(kind schema.GroupKind) bool { return kind.Kind == "PodGroup" || kind.Kind == "Workload" }

// makingPods are the pods that control others, as the driver of a Spark application does its executors.
func (w *View) makingPods() (all []*corev1.Pod) {
	making := sets.New[types.UID]()
	for _, p := range w.Snap.Pods {
		if ref := metav1.GetControllerOfNoCopy(p); ref != nil && ref.Kind == "Pod" {
			making.Insert(ref.UID)
		}
	}
	if len(making) == 0 {
		return nil
	}
	for _, p := range w.Snap.Pods {
		if making.Has(p.UID) {
			all = append(all, p)
		}
	}
	return all
}

// rootOf follows the controllers of a pod to the job that it is of, the outermost of several, or without one to the top: what makes jobs, such as a Workflow, goes on when
// one of them ends. A ReplicaSet that is not in the snapshot has its Deployment's name
// with the hash of the pods' template behind it. A static pod belongs to its node, and stands for itself.
func rootOf(pod *corev1.Pod, owners map[gang.Identity]owner) owner {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || placement.StaticPod(pod) {
		return owner{kind: podKind(), name: pod.Name, uid: pod.UID}
	}
	at := owner{kind: gang.OwnerKind(ref), name: ref.Name, uid: ref.UID}
	var job *owner
	for range 8 { // owners do not nest deeper; a cycle must not hang
		known, ok := owners[gang.Identity{Namespace: pod.Namespace, UID: at.uid}]
		if !ok || known.above.Kind == "CronJob" {
			break // a CronJob goes on indefinitely, the Job that it made does not
		}
		if isJob(at.kind) {
			job = &owner{kind: at.kind, name: at.name, uid: at.uid}
		}
		at = owner{kind: gang.OwnerKind(known.above), name: known.above.Name, uid: known.above.UID}
	}
	if job != nil && !isJob(at.kind) {
		return *job
	}
	if hash := pod.Labels["pod-template-hash"]; at.kind == replicaSet() && hash != "" {
		if name, ok := strings.CutSuffix(at.name, "-"+hash); ok {
			at.kind, at.name = deployment(), name
		}
	}
	return at
}

func isJob(kind schema.GroupKind) bool {
	_, known := kinds.ByKind(kind)
	return known
}

// endsSomeDay: jobs of every kind do, and so do pods of other owners, or of none, that are not restarted indefinitely; services do not.
func endsSomeDay(root owner, pod *corev1.Pod) bool {
	if isJob(root.kind) {
		return root.kind != ray.ClusterReader().GroupKind && root.kind != leaderworkerset.Reader().GroupKind // which serve until they are deleted
	}
	return strings.HasSuffix(root.kind.Kind, "Job") || pod.Spec.RestartPolicy == corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
}

// deadline is the earliest end that is declared, or what the job reports itself.
func deadline(h *Consumer, now time.Time) (time.Time, string) {
	if h.Job != nil && h.Job.End != nil {
		if h.Leftover() || h.Job.End.At.IsZero() {
			return time.Time{}, ""
		}
		return h.Job.End.At.Add(h.Job.LeftFor), "ttlSecondsAfterFinished of " + h.Kind + " " + h.String()
	}
	if end, source := reported(h.Job, now); !end.IsZero() {
		return end, source
	}
	end, source := deadlineOfPods(h, now)
	if h.Job != nil && h.Job.Deadline > 0 && !h.Job.Started.IsZero() {
		if limit := h.Job.Started.Add(h.Job.Deadline); end.IsZero() || limit.Before(end) {
			return limit, "activeDeadlineSeconds of " + h.Kind + " " + h.String()
		}
	}
	return end, source
}

// executionLimit is when Kueue takes back what a job has, which may run for as long as its Workload states, and suspends it; zero for one that states nothing, or is not admitted.
func (w *View) executionLimit(h *Consumer) (end time.Time, source string) {
	if h.Job == nil || h.Job.End != nil {
		return end, ""
	}
	u := w.Workload(h.Job)
	if u == nil {
		return end, ""
	}
	return kueue.ExecutionEnd(u), "maximumExecutionTimeSeconds of the Workload of " + h.Kind + " " + h.String()
}

// deadlineOfPods is when the last of the pods ends by their own declarations; zero if one has none, has not started, or has broken its promise.
func deadlineOfPods(h *Consumer, now time.Time) (last time.Time, source string) {
	field := ""
	for _, p := range h.Pods {
		limit, promised, limited := gang.RuntimeLimit(p.Annotations, &p.Spec)
		if !limited || p.Status.StartTime == nil {
			return time.Time{}, ""
		}
		end := p.Status.StartTime.Add(limit)
		if promised && !end.After(now) {
			return time.Time{}, ""
		}
		if end.After(last) {
			last, field = end, runtimeField(promised)
		}
	}
	return last, field + " of the pods of " + h.String()
}
