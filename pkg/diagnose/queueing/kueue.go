package queueing

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// QuotaTree is the quotas of Kueue's queues, and their usage.
func QuotaTree(v *view.View) *cohort.Tree {
	type quotas struct{}
	return view.Once(v, quotas{}, func() *cohort.Tree {
		objects := v.Snap.Custom
		return cohort.New(cohort.Objects{Queues: objects[kueue.Kind("ClusterQueue")], Cohorts: objects[kueue.Kind("Cohort")],
			Workloads: objects[kueue.Kind("Workload")], Flavors: objects[kueue.Kind("ResourceFlavor")]})
	})
}

// Admitted reports whether Kueue has admitted a Workload.
func Admitted(u *unstructured.Unstructured) bool {
	_, status := stage.Condition(u, "Admitted")
	return status == "True"
}

// Reserve is the Workload in which Kueue would keep what it gives to a gang that it admits; nil for a gang that waits in none of
// its queues, or that it has admitted already.
func Reserve(v *view.View, g *gang.Gang) *unstructured.Unstructured {
	if !Managed(v, g) || Workload(v, g) != nil {
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

// Workload is Kueue's view of the job. That of a group of pods is owned by each of them; of a job of several gangs each has one, which the job owns.
func Workload(v *view.View, g *gang.Gang) *unstructured.Unstructured {
	owned, all := workloadsOwned(v), v.Snap.Custom[kueue.Kind("Workload")]
	first := len(all)
	of := func(uid types.UID) {
		for _, i := range owned[gang.Identity{Namespace: g.Meta.Namespace, UID: uid}] {
			if i < first && isOfReplica(all[i], g) {
				first = i
			}
		}
	}
	of(g.Meta.UID)
	for _, p := range g.Bare {
		of(p.UID)
	}
	if first == len(all) {
		return nil
	}
	return all[first]
}

// workloadsOwned are the positions of the Workloads that an object owns.
func workloadsOwned(v *view.View) map[gang.Identity][]int {
	type owned struct{}
	return view.Once(v, owned{}, func() map[gang.Identity][]int {
		by := map[gang.Identity][]int{}
		for i, u := range v.Snap.Custom[kueue.Kind("Workload")] {
			for _, ref := range u.GetOwnerReferences() {
				if ref.UID != "" {
					owner := gang.Identity{Namespace: u.GetNamespace(), UID: ref.UID}
					by[owner] = append(by[owner], i)
				}
			}
		}
		return by
	})
}

// JobOf is the job that owns a Workload; nil if it is not seen.
func JobOf(v *view.View, wl *unstructured.Unstructured) *gang.Job {
	for _, ref := range wl.GetOwnerReferences() {
		if job := v.JobWithUID(wl.GetNamespace(), ref.UID); job != nil {
			return job
		}
	}
	return nil
}

// isOfReplica reports whether a Workload is not that of another replica of a job.
func isOfReplica(u *unstructured.Unstructured, g *gang.Gang) bool {
	index, ok := u.GetAnnotations()[kueue.IndexAnnotation]
	return !ok || g.Replica == nil || index == strconv.Itoa(int(*g.Replica))
}

// Elsewhere reports whether MultiKueue has a job run in another cluster: no pod of it is made here.
func Elsewhere(v *view.View, g *gang.Gang) bool {
	wl := Workload(v, g)
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
	return named && Installed(v) || Workload(v, g) != nil
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
			len(component.Running(v, component.Kueue(), func(image string) bool { return component.Repository(image) == "kueue" })) > 0
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

// ClusterQueue is the ClusterQueue behind a Workload's LocalQueue.
func ClusterQueue(v *view.View, g *gang.Gang, wl *unstructured.Unstructured) string {
	return behindLocal(v, wl, wl == Workload(v, g))
}

// behindLocal is the ClusterQueue behind a Workload's LocalQueue; empty for one that is stopped, unless that is not to count.
func behindLocal(v *view.View, wl *unstructured.Unstructured, stopped bool) string {
	f := gang.Fields{Object: wl}
	local := Object(v, "LocalQueue", wl.GetNamespace(), f.String("spec", "queueName"))
	if local == nil {
		return ""
	}
	l := gang.Fields{Object: local}
	if policy := l.String("spec", "stopPolicy"); policy != "" && policy != "None" && !stopped {
		return ""
	}
	return l.String("spec", "clusterQueue")
}

// Object is an object of a kind of Kueue's; nil if there is none of the name.
func Object(v *view.View, kind, namespace, name string) *unstructured.Unstructured {
	return v.Object(kueue.Kind(kind), namespace, name)
}
