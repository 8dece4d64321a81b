package gangcache

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Object is the content of the API object that declares a gang.
type Object struct {
	gang.Declaration
	// GroupKind is the kind of the object.
	GroupKind schema.GroupKind
	// Resource is the resource under which it is served.
	Resource schema.GroupVersionResource
	// Unreadable is the error of decoding the object. Its gang waits then: a
	// minimum that is not known must not be guessed.
	Unreadable error
}

// Reference refers to the object of a gang, for events.
func (o *Object) Reference(key gang.Key) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: o.Kind.GroupVersion().String(), Kind: o.Kind.Kind,
		Namespace: key.Namespace, Name: key.Name, UID: o.UID,
	}
}

// object returns the object that declares the gang; nil where there is none.
func (e *entry) object() *Object {
	for _, kind := range e.kinds {
		if object, ok := e.objects[kind]; ok {
			return object
		}
	}
	for _, object := range e.objects { // a budget, the one kind without a reader
		return object
	}
	return nil
}

// agree derives the terms of the gang: those that its object and its members declare. The class of an object without a priority counts only if the administrator configures it.
func (e *entry) agree(c *Cache, dialect gang.Dialect) gang.Terms {
	object := e.object()
	if object == nil {
		return gang.TermsOf(e.alike.examples())
	}
	if terms, ok := c.classes[object.PriorityClass]; ok && object.Priority == nil && c.priority == ObjectPriority {
		return terms
	}
	return object.Terms(e.alike.examples())
}

// minCount returns the number of members that the gang declares as its minimum; 0
// and the reason where that is not known.
func (e *entry) minCount(c *Cache, key gang.Key) (n int32, why string) {
	object := e.object()
	switch {
	case object != nil && object.Unreadable != nil:
		return 0, object.GroupKind.Kind + " " + key.Namespace + "/" + key.Name + " cannot be read: " + object.Unreadable.Error()
	case object != nil:
		return max(object.MinMember, gang.Sum(slices.Collect(maps.Values(object.RoleMin))...)), ""
	}
	// Members of a gang that is being scaled may disagree, and too few is the
	// worse mistake.
	minErr := ""
	for m := range e.alike {
		n = max(n, m.min)
		if m.minErr != "" && (minErr == "" || m.minErr < minErr) {
			minErr = m.minErr
		}
	}
	switch {
	case n > 0:
		return n, ""
	case key.Dialect == gang.Labels && minErr != "":
		return 0, "gang " + key.Namespace + "/" + key.Name + " has no minimum: " + minErr
	}
	return 0, c.missing(key)
}

// missing reports that a gang's object does not exist, and why that may be so.
func (c *Cache) missing(key gang.Key) string {
	text := "PodGroup " + key.Namespace + "/" + key.Name + " not found"
	for _, reader := range Readers() {
		for _, kind := range reader.Kinds {
			if problem := c.problems[kind.GroupKind]; reader.Dialect == key.Dialect && problem != "" {
				return text + ": " + problem
			}
		}
	}
	return text
}

// completed returns the number of members that have succeeded.
func (e *entry) completed() int32 {
	if len(e.pods[ended]) == 0 {
		return 0
	}
	n := int32(0)
	current := e.current()
	for _, info := range e.pods[ended] {
		if e.isCompleted(info) && current(info) {
			n++
		}
	}
	return n
}

// current returns whether a pod that has ended is a member of the gang as it is now. A label, and an object that no job controls, may be used again:
// what an earlier job left there is no member of the next one. A pod is one if its job has live members; or if it ended after the oldest of them was
// created, because an object may have the members of several jobs. It is one as well where the object goes with its job, or nothing else is left.
func (e *entry) current() func(*podInfo) bool {
	object := e.object()
	if len(e.alike) == 0 || object != nil && object.Owner != "" {
		return func(*podInfo) bool { return true }
	}
	jobs := map[string]bool{}
	for m := range e.alike {
		jobs[m.job] = true
	}
	oldest := e.oldest()
	return func(info *podInfo) bool {
		return jobs[info.job] || object != nil && gang.EndOf(info.pod).After(oldest.Time)
	}
}

func (e *entry) isCompleted(info *podInfo) bool {
	return info.pod.Status.Phase == corev1.PodSucceeded && info.pod.DeletionTimestamp == nil && e.pods[live][info.pod.UID] == nil
}

// compose derives the virtual PodGroup, or returns why there is none.
func (e *entry) compose(c *Cache, key gang.Key) (group *schedulingv1beta1.PodGroup, lack Lack) {
	// A group without members is not shown: its priority is not known yet, and
	// one that changes under a gang's first attempt fails that attempt.
	if len(e.pods[live]) == 0 {
		return nil, Lack{Code: answer.BelowQuorum, Text: "gang " + key.Namespace + "/" + key.Name + " has no pods"}
	}
	minCount, why := e.minCount(c, key)
	if minCount == 0 {
		return nil, Lack{Code: answer.PodGroupMissing, Text: why}
	}
	if why := e.roleMissing(key); why != "" {
		return nil, Lack{Code: answer.BelowQuorum, Text: why, OfRole: true}
	}
	topology, err := e.topology()
	if err != nil {
		return nil, Lack{Code: answer.SelectorNoMatch, Text: "gang " + key.Namespace + "/" + key.Name + " cannot be placed: " + err.Error()}
	}
	group = &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.VirtualName(), Annotations: topology.Annotations()}}
	object := e.object()
	if object != nil {
		group.UID, group.CreationTimestamp = object.UID, metav1.NewTime(object.Created)
	} else {
		group.UID, group.CreationTimestamp = types.UID(key.String()), e.oldest()
	}
	group.Spec = schedulingv1beta1.PodGroupSpec{
		Priority: &e.terms.Priority,
		// The engine's default evicts members one by one, which breaks a gang.
		DisruptionMode: &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
		SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: max(1, minCount-e.completed())},
		},
	}
	if object != nil && object.Basic {
		group.Spec.DisruptionMode = disruption(object)
		group.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}
	}
	if object != nil && object.Parent != "" {
		joinTree(group, object)
	}
	if policy := schedulingv1beta1.PreemptionPolicy(e.terms.Policy); policy != "" {
		group.Spec.PreemptionPolicy = &policy
	}
	return group, Lack{}
}

// PlacesTrees reports whether the engine places the parts of composite PodGroups together. It is decided when the scheduler starts.
func PlacesTrees() bool { return utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup) }

// joinTree makes a virtual group a part of its composite one. The engine places such a tree as a whole, and has the rules of the parts from fields
// of its own.
func joinTree(group *schedulingv1beta1.PodGroup, object *Object) {
	group.Spec.ParentCompositePodGroupName = &object.Parent
	if key := object.Topology.Required; key != "" {
		group.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: key}}}
	}
	group.Spec.DisruptionMode = disruption(object)
}

// disruption is how the members of a group are evicted, as its object declares.
func disruption(object *Object) *schedulingv1beta1.DisruptionMode {
	if object.Together {
		return &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	}
	return &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}
}

// topology is by which node labels the members share a domain: as the object states it, or else as the pods do; rules for parts are looked for apart. One that
// cannot be read is an error, as is one on which pods disagree: the gang waits, because a rule that is not understood must not be ignored.
func (e *entry) topology() (gang.Topology, error) {
	object := e.object()
	if object == nil {
		if topology, err := e.alike.stated(); err != nil || !topology.Empty() {
			return topology, err
		}
		return e.topologyOfPods()
	}
	if object.Topology.OfAll() && (len(object.Topology.Parts) > 0 || !e.alike.divided()) {
		return object.Topology, nil
	}
	ofPods, err := e.topologyOfPods()
	topology := object.Topology.Or(ofPods)
	if object.Parent != "" {
		topology.Parts = nil // the engine places the tree, and has its rules from fields
	}
	return topology, err
}

// topologyOfPods is the topology as the members state it in our annotations.
func (e *entry) topologyOfPods() (gang.Topology, error) {
	if topology, err := gang.TopologyOfPods(e.alike.examples()); err == nil {
		return topology, nil
	}
	var pods []*corev1.Pod // the error names the first ones
	for _, m := range e.pods[live] {
		if topologyText(m) != "" {
			pods = append(pods, m.pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return compare(a, b) })
	return gang.TopologyOfPods(slices.Values(pods))
}

// roleMissing reports a role of which too few pods exist. The engine knows one
// minimum for all members, so roles are checked before it sees the gang.
func (e *entry) roleMissing(key gang.Key) string {
	object := e.object()
	if object == nil || len(object.RoleMin) == 0 {
		return ""
	}
	have := map[string]int32{}
	for m, count := range e.alike {
		have[m.role] += count.n
	}
	current := e.current()
	for _, info := range e.pods[ended] {
		if e.isCompleted(info) && current(info) {
			have[info.role]++
		}
	}
	roles := make([]string, 0, len(object.RoleMin))
	for role := range object.RoleMin {
		roles = append(roles, role)
	}
	slices.Sort(roles)
	for _, role := range roles {
		if required := object.RoleMin[role]; have[role] < required {
			return waits(key) + exist(have[role], required) + " of role " + role
		}
	}
	return ""
}

func (e *entry) oldest() metav1.Time {
	var oldest metav1.Time
	for pod := range e.alike.examples() {
		if oldest.IsZero() || pod.CreationTimestamp.Before(&oldest) {
			oldest = pod.CreationTimestamp
		}
	}
	return oldest
}
