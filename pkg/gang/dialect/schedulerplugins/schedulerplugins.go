// Package schedulerplugins reads and writes the gang format of
// kubernetes-sigs/scheduler-plugins: a PodGroup object of
// scheduling.x-k8s.io/v1alpha1, and on each member a label that names it.
package schedulerplugins

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// DefaultScheduler is the name under which gangctl's own scheduler serves.
const DefaultScheduler = "gang-scheduler"

// Up to about v0.24 the same format lived in another API group, under another label. Training Operator v1.6 wrote it.
const (
	oldGroup = "scheduling.sigs.k8s.io"
	oldLabel = "pod-group.scheduling.sigs.k8s.io"
)

const (
	// PodGroupLabel is the pod label whose value is the name of the PodGroup
	// in the pod's own namespace.
	PodGroupLabel = spv1alpha1.PodGroupLabel
	// CRDName is the name of the CustomResourceDefinition that serves PodGroups.
	CRDName = "podgroups.scheduling.x-k8s.io"
)

// GVR is the resource under which PodGroups are served.
func GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
}

// GVK is the kind of a PodGroup.
func GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"}
}

// QuotaKinds are the kinds of an ElasticQuota, for the pods of its namespace, of today and of before the API group had its name. Koordinator's are of the latter, for
// pods that name one.
func QuotaKinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: GVK().Group, Kind: "ElasticQuota"}, {Group: oldGroup, Kind: "ElasticQuota"}}
}

// SetGroup makes a pod, or the pods of a template, members of the named PodGroup.
func SetGroup(meta *metav1.ObjectMeta, name string) {
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	meta.Labels[PodGroupLabel] = name
}

// NameOf returns the PodGroup that a pod names; ok is false where it names none.
func NameOf(pod metav1.Object) (name string, ok bool) {
	name = pod.GetLabels()[PodGroupLabel]
	return name, name != ""
}

// Decode turns an object read through a dynamic client into a PodGroup.
func Decode(u *unstructured.Unstructured) (*spv1alpha1.PodGroup, error) {
	group := &spv1alpha1.PodGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, group); err != nil {
		return nil, fmt.Errorf("decode PodGroup %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	return group, nil
}

// Counts are the inputs of a PodGroup's status: its members by phase.
// Bound counts members that have a node and have not ended, Open those that want
// one.
type Counts struct {
	Bound, Running, Succeeded, Failed, Open int32
}

// Phase computes a PodGroup's phase from its members alone; the phase that is
// stored is never trusted (other writers of this format mix up groups of the
// same name in two namespaces). Failed is final for the controller of this
// format, and so it is not reported while the members that there are may still
// start: the failed ones may be an earlier attempt's.
func Phase(minMember int32, c Counts) spv1alpha1.PodGroupPhase {
	switch {
	case c.Failed > 0 && c.Bound+c.Succeeded+c.Open < minMember:
		return spv1alpha1.PodGroupFailed
	case c.Succeeded >= minMember:
		return spv1alpha1.PodGroupFinished
	case c.Running+c.Succeeded >= minMember:
		return spv1alpha1.PodGroupRunning
	case c.Bound+c.Succeeded >= minMember:
		return spv1alpha1.PodGroupScheduling
	case c.Bound > 0:
		return spv1alpha1.PodGroupUnknown
	default:
		return spv1alpha1.PodGroupPending
	}
}

// CountPods sums the members of one gang by phase.
func CountPods(pods []*corev1.Pod) Counts {
	var c Counts
	for _, pod := range pods {
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			c.Succeeded++
		case pod.Status.Phase == corev1.PodFailed:
			c.Failed++
		case pod.Spec.NodeName != "":
			c.Bound++
			if pod.Status.Phase == corev1.PodRunning {
				c.Running++
			}
		case pod.DeletionTimestamp == nil:
			c.Open++
		}
	}
	return c
}

// Staying leaves out the members that are being deleted and have not ended. They
// may be so indefinitely, on a node that is dead, and do not help their gang any more.
func Staying(pods []*corev1.Pod) []*corev1.Pod {
	var staying []*corev1.Pod
	for _, pod := range pods {
		if podutil.IsPodTerminal(pod) || pod.DeletionTimestamp == nil {
			staying = append(staying, pod)
		}
	}
	return staying
}

// GroupOfLabel is the API group of the PodGroups that a release reads which reads the label by which a pod names its own; empty for a pod that names none.
func GroupOfLabel(pod metav1.Object) string {
	switch labels := pod.GetLabels(); {
	case labels[PodGroupLabel] != "":
		return GVK().Group
	case labels[oldLabel] != "":
		return oldGroup
	}
	return ""
}

// Reader reads PodGroups of scheduling.x-k8s.io, and those of its predecessor scheduling.sigs.k8s.io.
func Reader() gang.Reader {
	return gang.Reader{
		Dialect: gang.SchedulerPlugins,
		Kinds: []gang.Served{
			{GroupKind: GVK().GroupKind(), Resource: GVR().Resource},
			{GroupKind: schema.GroupKind{Group: oldGroup, Kind: GVK().Kind}, Resource: GVR().Resource},
		},
		Schedulers: []string{"scheduler-plugins-scheduler", "gang-scheduler"},
		NameOf: func(pod metav1.Object) (string, bool) {
			if name, ok := NameOf(pod); ok {
				return name, true
			}
			name := pod.GetLabels()[oldLabel]
			return name, name != ""
		},
		Decode: func(u *unstructured.Unstructured) (gang.Declaration, error) {
			return gang.DecodeGroup(gang.SchedulerPlugins, u)
		},
	}
}

// Writer writes this dialect.
func Writer() gang.Writer {
	return gang.Writer{
		Dialect: gang.SchedulerPlugins, Versions: []schema.GroupVersion{GVK().GroupVersion()}, Scheduler: DefaultScheduler, Prefers: true,
		Object: func(d gang.Declaration, version schema.GroupVersion) *unstructured.Unstructured {
			d.Queue, d.PriorityClass = "", "" // which it does not have
			return gang.NewGroup(d, version)
		},
		SetGroup: func(pod *corev1.PodTemplateSpec, d gang.Declaration, _ string) { SetGroup(&pod.ObjectMeta, d.Key.Name) },
	}
}
