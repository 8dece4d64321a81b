package queueing

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
)

// QuotaTree is the quotas of Kueue's queues, and their usage.
func QuotaTree(v *view.View) *cohort.Tree {
	type quotaTree struct{}
	return view.Once(v, quotaTree{}, func() *cohort.Tree { return QuotaTreeOf(v, v.Snap.Custom[kueue.Kind("Workload")]) })
}

// QuotaTreeFor is the tree as it is for a Workload, if there is one: one that replaces another takes over what that uses.
func QuotaTreeFor(v *view.View, wl *unstructured.Unstructured) *cohort.Tree {
	if wl == nil || wl.GetAnnotations()[kueue.ReplacesAnnotation] == "" {
		return QuotaTree(v)
	}
	replaced := wl.GetAnnotations()[kueue.ReplacesAnnotation]
	return view.Once(v, treeWithout(replaced), func() *cohort.Tree {
		return QuotaTreeOf(v, slices.DeleteFunc(slices.Clone(v.Snap.Custom[kueue.Kind("Workload")]), func(u *unstructured.Unstructured) bool {
			return u.GetNamespace()+"/"+u.GetName() == replaced
		}))
	})
}

// treeWithout is the key of the tree without a Workload that is replaced.
type treeWithout string

// QuotaTreeOf is the tree with the usage of some Workloads alone.
func QuotaTreeOf(v *view.View, workloads []*unstructured.Unstructured) *cohort.Tree {
	objects := v.Snap.Custom
	return cohort.New(cohort.Objects{Queues: objects[kueue.Kind("ClusterQueue")], Cohorts: objects[kueue.Kind("Cohort")],
		Workloads: workloads, Flavors: objects[kueue.Kind("ResourceFlavor")]})
}

// Reserve is the Workload in which Kueue would keep what it gives to a gang that it admits; nil for a gang that waits in none of
// its queues, or that it has admitted already.
func Reserve(v *view.View, g *gang.Gang) *unstructured.Unstructured {
	if !Managed(v, g) || v.Workload(g.Job) != nil {
		return nil
	}
	queue := clusterQueueOf(v, g, nil)
	if queue == "" {
		return nil
	}
	admission := QuotaTree(v).Admission(queue, PodSets(v, g)...)
	if admission == nil {
		return nil
	}
	var conditions []any
	for _, kind := range []string{"QuotaReserved", "Admitted"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": "True", "reason": kind})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kueue.Group + "/v1beta1", "kind": "Workload",
		"metadata": map[string]any{"namespace": g.Meta.Namespace, "name": "of-" + g.Meta.Name, "ownerReferences": []any{
			map[string]any{"apiVersion": g.Kind.GroupVersion().String(), "kind": g.Kind.Kind, "name": g.Meta.Name, "uid": string(g.Meta.UID), "controller": true},
		}},
		"spec":   map[string]any{"queueName": LocalQueue(v, g, nil)},
		"status": map[string]any{"admission": admission, "conditions": conditions},
	}}
}

// Elsewhere reports whether MultiKueue has a job run in another cluster: no pod of it is made here.
func Elsewhere(v *view.View, g *gang.Gang) bool {
	wl := v.Workload(g.Job)
	return wl != nil && ClusterOf(wl) != "" || g.LeftTo == kueue.MultiKueue && Managed(v, g)
}

// ClusterOf is the cluster to which MultiKueue has dispatched a Workload; empty if it has not.
func ClusterOf(wl *unstructured.Unstructured) string {
	f := gang.Fields{Object: wl}
	return f.String("status", "clusterName")
}

// Managed reports whether Kueue suspends the job. Such a job must not be resumed by hand. Kueue may manage jobs that
// name no queue: its Workload shows it.
func Managed(v *view.View, g *gang.Gang) bool {
	_, named := kueue.QueueOf(&g.Meta)
	return named && Installed(v) || v.Workload(g.Job) != nil
}

// Installed reports whether Kueue is in the cluster: its kinds are served, or an object of one is seen, or its controller. Without it, a queue that a job names is a label.
func Installed(v *view.View) bool {
	type installed struct{}
	return view.Once(v, installed{}, func() bool {
		for kind, objects := range v.Snap.Custom {
			if kind.Group == kueue.Group && len(objects) > 0 {
				return true
			}
		}
		return v.Snap.Server.Resources == nil || v.Snap.Serves(schema.GroupResource{Group: kueue.Group, Resource: "workloads"}, "Workload") ||
			len(component.Running(v, component.Kueue(), func(image string) bool { return imagename.Base(image) == "kueue" })) > 0
	})
}

// LocalQueue is the name of the LocalQueue in which the job waits.
func LocalQueue(v *view.View, g *gang.Gang, wl *unstructured.Unstructured) string {
	if name, ok := kueue.QueueOf(&g.Meta); ok {
		return name
	}
	if wl != nil {
		f := gang.Fields{Object: wl}
		return f.String("spec", "queueName")
	}
	if g.Decl != nil {
		return g.Decl.Queue
	}
	return ""
}

// The orders in which a ClusterQueue tries those that wait in it: none before the first, or whichever there is quota for.
const (
	StrictFIFO     = "StrictFIFO"
	BestEffortFIFO = "BestEffortFIFO"
)

// Strict reports whether a ClusterQueue admits none before the first that waits in it.
func Strict(queue *unstructured.Unstructured) bool {
	f := gang.Fields{Object: queue}
	return f.String("spec", "queueingStrategy") == StrictFIFO
}

// CheckNames are the admission checks that a ClusterQueue names.
func CheckNames(queue *unstructured.Unstructured) []string {
	f := gang.Fields{Object: queue}
	names := f.Strings("spec", "admissionChecks")
	for _, item := range f.List("spec", "admissionChecksStrategy", "admissionChecks") {
		if name, _ := item["name"].(string); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// ProvisioningCheck is the admission check by which Kueue will have nodes provisioned for a gang that it holds; empty if it will not, or the check has rejected the gang.
func ProvisioningCheck(v *view.View, g *gang.Gang) string {
	wl := v.Workload(g.Job)
	if !Managed(v, g) || !kueue.Holds(g.Job) && !HeldByGate(g) || wl != nil && (kueue.Admitted(wl) || slices.ContainsFunc(kueue.ChecksOf(wl), func(c kueue.Check) bool { return c.Last() == kueue.CheckRejected })) {
		return ""
	}
	queue := Object(v, "ClusterQueue", "", clusterQueueOf(v, g, wl))
	if queue == nil {
		return ""
	}
	for _, name := range CheckNames(queue) {
		if check := Object(v, "AdmissionCheck", "", name); check != nil {
			if f := (gang.Fields{Object: check}); f.String("spec", "controllerName") == kueue.Provisioning {
				return name
			}
		}
	}
	return ""
}

// Selector is which namespaces a ClusterQueue takes Workloads of, by their labels; nil where it does not state that, or not in a way that the API server would accept.
func Selector(queue *unstructured.Unstructured) labels.Selector {
	f := gang.Fields{Object: queue}
	raw := f.Map("spec", "namespaceSelector")
	if raw == nil {
		return nil
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, selector); err != nil {
		return nil
	}
	selects, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	return selects
}

// Takes reports whether a ClusterQueue takes Workloads of a namespace; true where that is not known.
func Takes(v *view.View, queue *unstructured.Unstructured, namespace string) bool {
	type byNamespace struct{}
	labelled := view.Once(v, byNamespace{}, func() map[string]labels.Set {
		all := map[string]labels.Set{}
		for _, ns := range v.Snap.Namespaces {
			all[ns.Name] = ns.Labels
		}
		return all
	})
	type selectorOf struct{ queue *unstructured.Unstructured }
	selector := view.Once(v, selectorOf{queue}, func() labels.Selector { return Selector(queue) })
	set, seen := labelled[namespace]
	return !seen || selector == nil || selector.Matches(set)
}

// ClusterQueue is the ClusterQueue behind a Workload's LocalQueue.
func ClusterQueue(v *view.View, wl *unstructured.Unstructured) string {
	queue, _ := behindLocal(v, wl)
	return queue
}

// behindLocal is the ClusterQueue behind a Workload's LocalQueue, and whether that is stopped.
func behindLocal(v *view.View, wl *unstructured.Unstructured) (queue string, stopped bool) {
	f := gang.Fields{Object: wl}
	local := Object(v, "LocalQueue", wl.GetNamespace(), f.String("spec", "queueName"))
	if local == nil {
		return "", false
	}
	l := gang.Fields{Object: local}
	return l.String("spec", "clusterQueue"), kueue.StopPolicy(local) != ""
}

// Object is an object of a kind of Kueue's; nil if there is none of the name.
func Object(v *view.View, kind, namespace, name string) *unstructured.Unstructured {
	return v.Object(kueue.Kind(kind), namespace, name)
}
