package view

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/placement"
)

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
