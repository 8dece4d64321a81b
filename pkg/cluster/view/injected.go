package view

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// Injected is what the pods of a role have and their template has not, because a webhook, a policy or a plugin of the API server put it into them: pods that are made again
// get it again. It is a spec that has only what is added: rules about nodes, tolerations, containers, and resources of containers by their names. It is nil where no
// pod shows it. What controllers and Kueue write into single pods, such as the node of one, is left out.
func (w *View) Injected(g *gang.Gang, role string) *corev1.PodSpec {
	type injected struct {
		gang *gang.Gang
		role string
	}
	if r := g.RoleByName(role); r != nil {
		role = r.Name
	}
	return Once(w, injected{g, role}, func() *corev1.PodSpec {
		pods := shows(g, role)
		if g.Bare != nil || len(pods) == 0 {
			return w.Snap.Injected[w.injectedKey(g, role)]
		}
		base := w.virtual(g, gang.Member{Role: role}, nil)
		all := w.addedTo(g, role, base, pods[0])
		for _, p := range pods[1:] {
			all = inBoth(all, w.addedTo(g, role, base, p))
		}
		return all
	})
}

// StillInjected is what is injected into the pods of each job that are assumed to be made again, after those of a gang were.
func (w *View) StillInjected(g *gang.Gang) map[snapshot.InjectedKey]*corev1.PodSpec {
	if g.Meta.UID == "" {
		return w.Snap.Injected
	}
	all := maps.Clone(w.Snap.Injected)
	for _, r := range g.Roles {
		if spec := w.Injected(g, r.Name); spec != nil {
			if all == nil {
				all = map[snapshot.InjectedKey]*corev1.PodSpec{}
			}
			all[w.injectedKey(g, r.Name)] = spec
		}
	}
	return all
}

func (w *View) injectedKey(g *gang.Gang, role string) snapshot.InjectedKey {
	return snapshot.InjectedKey{Namespace: g.Meta.Namespace, Job: g.Meta.UID, Role: role}
}

// shows are the pods of a role that show what is injected: those that wait for a node, or else those that have one.
func shows(g *gang.Gang, role string) []*corev1.Pod {
	var waiting, placed []*corev1.Pod
	for _, m := range g.Members {
		if m.Role != role || m.Pod == nil {
			continue
		}
		switch m.State {
		case gang.Pending, gang.Gated:
			waiting = append(waiting, m.Pod)
		case gang.Starting, gang.Running:
			placed = append(placed, m.Pod)
		default: // of those that go the successors show it
		}
	}
	if len(waiting) > 0 {
		return waiting
	}
	return placed
}

// addedTo is what one pod of a role has and what its template makes has not.
func (w *View) addedTo(g *gang.Gang, role string, base, pod *corev1.Pod) *corev1.PodSpec {
	was, is := &base.Spec, &pod.Spec
	template, changed := g.RoleByName(role).Template, w.changedSince(g) || lacksRules(was, is)
	a := &corev1.PodSpec{
		NodeSelector:              w.addedSelector(g, &template, pod, changed),
		Affinity:                  addedAffinity(was.Affinity, is.Affinity, len(g.Exclusive) > 0),
		Containers:                addedContainers(was.Containers, is.Containers),
		InitContainers:            addedContainers(was.InitContainers, is.InitContainers),
		Tolerations:               lackedBy(is.Tolerations, was.Tolerations, func(x, y corev1.Toleration) bool { return equality.Semantic.DeepEqual(x, y) }),
		ResourceClaims:            lackedBy(is.ResourceClaims, was.ResourceClaims, sameClaim),
		TopologySpreadConstraints: lackedBy(is.TopologySpreadConstraints, was.TopologySpreadConstraints, sameSpread),
	}
	a.Tolerations = slices.DeleteFunc(a.Tolerations, func(t corev1.Toleration) bool { return shortOutage(t) || w.ofFlavor(g, t) })
	if changed && a.Affinity != nil {
		a.Affinity.NodeAffinity = nil
	}
	if was.RuntimeClassName == nil {
		a.RuntimeClassName = is.RuntimeClassName
	}
	if was.Overhead == nil {
		a.Overhead = is.Overhead
	}
	if template.Spec.PriorityClassName == "" && g.PriorityClass == "" && is.PriorityClassName != was.PriorityClassName {
		a.PriorityClassName, a.Priority, a.PreemptionPolicy = is.PriorityClassName, is.Priority, is.PreemptionPolicy
	}
	return a
}

// changedSince reports whether the templates of a job may have been changed since its pods were made: what they require no longer, nothing put into the pods.
func (w *View) changedSince(g *gang.Gang) bool {
	return g.Meta.Generation > 1 && g.BatchJob == nil && g.Kind.Kind != "JobSet" // whose templates stay as they are while there are pods
}

// lacksRules reports whether a pod does not require of nodes what its template does: that is another one than the pod was made of.
func lacksRules(was, is *corev1.PodSpec) bool {
	for key, value := range was.NodeSelector {
		if is.NodeSelector[key] != value {
			return true
		}
	}
	now := requiredTerms(affinityOf(is))
	for _, t := range requiredTerms(affinityOf(was)) {
		for _, r := range t.MatchExpressions {
			if !slices.ContainsFunc(now, func(t corev1.NodeSelectorTerm) bool { return hasRequirement(t, r) }) {
				return true
			}
		}
	}
	return false
}

func affinityOf(spec *corev1.PodSpec) *corev1.NodeAffinity {
	if spec.Affinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity
}

// addedSelector are the labels by which a pod selects nodes and its template does not. A single node is chosen for a single pod, and Kueue chooses again.
func (w *View) addedSelector(g *gang.Gang, template *corev1.PodTemplateSpec, pod *corev1.Pod, changed bool) map[string]string {
	if len(pod.Spec.NodeSelector) == 0 {
		return nil
	}
	added := maps.Clone(pod.Spec.NodeSelector)
	if class := w.runtimeClass(pod.Spec.RuntimeClassName); class != nil && class.Scheduling != nil {
		maps.DeleteFunc(added, func(key, value string) bool { return class.Scheduling.NodeSelector[key] == value })
	}
	var assigned map[string]string
	if wl := w.Workload(g.Job); wl != nil {
		assigned = kueue.Assigned(wl, template, pod)
	}
	flavors, namespace := w.flavorLabels(g), map[string]string{}
	for _, of := range w.SelectorsOfNamespace(g.Meta.Namespace) {
		maps.Copy(namespace, of.Labels)
	}
	maps.DeleteFunc(added, func(key, value string) bool {
		if _, own := template.Spec.NodeSelector[key]; own || key == corev1.LabelHostname || assigned[key] != "" {
			return true
		}
		if namespace[key] == value && value != "" {
			return false
		}
		return changed || flavors[key+"="+value] || slices.ContainsFunc(g.Exclusive, func(x gang.Exclusive) bool { return x.Rule.Required == key })
	})
	return added
}

// SelectorOfNamespace is by which labels of nodes a namespace has its pods select, and the annotation that does: of admission plugin PodNodeSelector, or of OpenShift.
type SelectorOfNamespace struct {
	Annotation string
	Labels     map[string]string
}

// SelectorsOfNamespace are by which labels of nodes the annotations of a namespace have its pods select. One that the API server cannot read selects none.
func (w *View) SelectorsOfNamespace(name string) (all []SelectorOfNamespace) {
	for _, ns := range w.Snap.Namespaces {
		if ns.Name != name {
			continue
		}
		for _, key := range []string{"scheduler.alpha.kubernetes.io/node-selector", "openshift.io/node-selector"} {
			if selector, err := labels.ConvertSelectorToLabelsMap(ns.Annotations[key]); err == nil && len(selector) > 0 {
				all = append(all, SelectorOfNamespace{key, selector})
			}
		}
	}
	return all
}

// flavorLabels are the labels of nodes that ResourceFlavors have the pods of what Kueue admits select, as key=value; none for a job that is in no queue of Kueue.
func (w *View) flavorLabels(g *gang.Gang) map[string]bool {
	if _, queued := kueue.QueueOf(&g.Meta); !queued {
		return nil
	}
	all := map[string]bool{}
	for _, u := range w.Snap.Custom[kueue.Kind("ResourceFlavor")] {
		f := gang.Fields{Object: u}
		for key, value := range f.Map("spec", "nodeLabels") {
			if text, ok := value.(string); ok {
				all[key+"="+text] = true
			}
		}
	}
	return all
}

// ofFlavor reports whether a toleration is one that a ResourceFlavor gives the pods of what Kueue admits.
func (w *View) ofFlavor(g *gang.Gang, t corev1.Toleration) bool {
	if _, queued := kueue.QueueOf(&g.Meta); !queued {
		return false
	}
	return slices.ContainsFunc(w.Snap.Custom[kueue.Kind("ResourceFlavor")], func(u *unstructured.Unstructured) bool {
		f := gang.Fields{Object: u}
		return slices.ContainsFunc(f.List("spec", "tolerations"), func(item map[string]any) bool { return item["key"] == t.Key })
	})
}

// addedAffinity are the required terms that a pod has and its template has not. Of affinity to other pods they are only known where the template has none; where parts of a
// gang have domains for themselves, the controller writes such terms.
func addedAffinity(was, is *corev1.Affinity, exclusive bool) *corev1.Affinity {
	if is == nil {
		return nil
	}
	if was == nil {
		was = &corev1.Affinity{}
	}
	a := &corev1.Affinity{NodeAffinity: addedNodeAffinity(was.NodeAffinity, is.NodeAffinity)}
	if p := is.PodAffinity; p != nil && !exclusive && len(p.RequiredDuringSchedulingIgnoredDuringExecution) > 0 && (was.PodAffinity == nil || len(was.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 0) {
		a.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: p.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if p := is.PodAntiAffinity; p != nil && !exclusive && len(p.RequiredDuringSchedulingIgnoredDuringExecution) > 0 && (was.PodAntiAffinity == nil || len(was.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) == 0) {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: p.RequiredDuringSchedulingIgnoredDuringExecution}
	}
	if a.NodeAffinity == nil && a.PodAffinity == nil && a.PodAntiAffinity == nil {
		return nil
	}
	return a
}

// addedNodeAffinity is what a pod requires of its node and its template does not: its terms, where the template has none, or else the requirements that were added to each. One that
// names a node is for a single pod.
func addedNodeAffinity(was, is *corev1.NodeAffinity) *corev1.NodeAffinity {
	now, before := requiredTerms(is), requiredTerms(was)
	if len(now) == 0 || slices.ContainsFunc(now, func(t corev1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 }) {
		return nil
	}
	if len(before) == 0 {
		return requiring(now)
	}
	had := func(r corev1.NodeSelectorRequirement) bool {
		return slices.ContainsFunc(before, func(t corev1.NodeSelectorTerm) bool { return hasRequirement(t, r) })
	}
	var added []corev1.NodeSelectorRequirement
	for _, r := range now[0].MatchExpressions {
		if !had(r) && !slices.ContainsFunc(now, func(t corev1.NodeSelectorTerm) bool { return !hasRequirement(t, r) }) {
			added = append(added, r)
		}
	}
	if len(added) == 0 {
		return nil
	}
	return requiring([]corev1.NodeSelectorTerm{{MatchExpressions: added}})
}

func requiredTerms(a *corev1.NodeAffinity) []corev1.NodeSelectorTerm {
	if a == nil || a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

func requiring(terms []corev1.NodeSelectorTerm) *corev1.NodeAffinity {
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

func hasRequirement(t corev1.NodeSelectorTerm, r corev1.NodeSelectorRequirement) bool {
	return slices.ContainsFunc(t.MatchExpressions, func(x corev1.NodeSelectorRequirement) bool { return equality.Semantic.DeepEqual(x, r) })
}

// addedContainers are those that the template has not, and of the others the resources of which it requests none. An amount that differs may be that of a resize in place.
func addedContainers(was, is []corev1.Container) (added []corev1.Container) {
	for _, c := range is {
		at := slices.IndexFunc(was, func(x corev1.Container) bool { return x.Name == c.Name })
		if at < 0 {
			added = append(added, c)
			continue
		}
		more := corev1.Container{Name: c.Name}
		for name, q := range c.Resources.Requests {
			if _, had := was[at].Resources.Requests[name]; !had && !q.IsZero() {
				if more.Resources.Requests == nil {
					more.Resources.Requests = corev1.ResourceList{}
				}
				more.Resources.Requests[name] = q
			}
		}
		if more.Resources.Requests != nil {
			added = append(added, more)
		}
	}
	return added
}

// inBoth is what two pods of a role both have besides their template.
func inBoth(a, b *corev1.PodSpec) *corev1.PodSpec {
	both := *a
	both.NodeSelector = maps.Clone(a.NodeSelector)
	maps.DeleteFunc(both.NodeSelector, func(key, value string) bool { return b.NodeSelector[key] != value })
	if !equality.Semantic.DeepEqual(a.Affinity, b.Affinity) {
		both.Affinity = nil
	}
	equal := func(x, y corev1.Toleration) bool { return equality.Semantic.DeepEqual(x, y) }
	both.Tolerations = within(a.Tolerations, b.Tolerations, equal)
	both.Containers = within(a.Containers, b.Containers, sameContainer)
	both.InitContainers = within(a.InitContainers, b.InitContainers, sameContainer)
	both.ResourceClaims = within(a.ResourceClaims, b.ResourceClaims, sameClaim)
	both.TopologySpreadConstraints = within(a.TopologySpreadConstraints, b.TopologySpreadConstraints, sameSpread)
	if !equality.Semantic.DeepEqual(a.RuntimeClassName, b.RuntimeClassName) {
		both.RuntimeClassName = nil
	}
	if !equality.Semantic.DeepEqual(a.Overhead, b.Overhead) {
		both.Overhead = nil
	}
	if a.PriorityClassName != b.PriorityClassName {
		both.PriorityClassName, both.Priority, both.PreemptionPolicy = "", nil, nil
	}
	return &both
}

func sameContainer(x, y corev1.Container) bool {
	return x.Name == y.Name && equality.Semantic.DeepEqual(x.Resources.Requests, y.Resources.Requests)
}

func sameClaim(x, y corev1.PodResourceClaim) bool { return x.Name == y.Name }

func sameSpread(x, y corev1.TopologySpreadConstraint) bool {
	return x.TopologyKey == y.TopologyKey && x.WhenUnsatisfiable == y.WhenUnsatisfiable
}

// within are the items of a that b has, too, and lackedBy those that it has not.
func within[T any](a, b []T, same func(x, y T) bool) []T {
	return slices.DeleteFunc(slices.Clone(a), func(x T) bool { return !slices.ContainsFunc(b, func(y T) bool { return same(x, y) }) })
}

func lackedBy[T any](a, b []T, same func(x, y T) bool) []T {
	return slices.DeleteFunc(slices.Clone(a), func(x T) bool { return slices.ContainsFunc(b, func(y T) bool { return same(x, y) }) })
}
