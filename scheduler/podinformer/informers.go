// Package podinformer watches the pods of the cluster, and brings those of our scheduler names into the cache of gangs.
package podinformer

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/bounds"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/suspend"
)

// Informers watch the pods of the cluster as the API server has them: the live
// ones, and those that have ended, which the engine does not see.
type Informers struct {
	Live, Ended cache.SharedIndexInformer
}

// New returns informers that do not run yet. A panic over a pod is counted, and the pod is skipped.
func New(client kubernetes.Interface, panics *engine.Panics) (*Informers, error) {
	p := &Informers{
		Live:  panics.Informer(selecting(client, "status.phase!=Succeeded,status.phase!=Failed")),
		Ended: panics.Informer(selecting(client, "status.phase!=Pending,status.phase!=Running,status.phase!=Unknown")),
	}
	if err := p.Live.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	if err := p.Ended.SetTransform(trimEnded); err != nil {
		return nil, fmt.Errorf("watch ended pods: %w", err)
	}
	return p, nil
}

// All are the pods that are known.
func (p *Informers) All() (pods []*corev1.Pod) {
	for _, informer := range []cache.SharedIndexInformer{p.Live, p.Ended} {
		pods = append(pods, podsIn(informer)...)
	}
	return pods
}

// Get returns the live pod that has a name now; ok is false for none.
func (p *Informers) Get(namespace, name string) (pod *corev1.Pod, ok bool) {
	obj, _, err := p.Live.GetStore().GetByKey(cache.ObjectName{Namespace: namespace, Name: name}.String())
	pod, ok = obj.(*corev1.Pod)
	return pod, ok && err == nil // its keys are names, so there is no error
}

// Version changes with every change of a pod.
func (p *Informers) Version() string {
	return p.Live.LastSyncResourceVersion() + "/" + p.Ended.LastSyncResourceVersion()
}

func podsIn(informer cache.SharedIndexInformer) (pods []*corev1.Pod) {
	for _, obj := range informer.GetStore().List() {
		if pod, ok := obj.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods
}

// OwnedBy reports whether a job has pods because of which it cannot be resumed yet.
// Those that have ended count where the job, when it is suspended, deletes them,
// too: a Job of Kubernetes deletes its active pods only, and keeps the others for
// as long as it is there. Pods of other namespaces do not count, whatever their users wrote into them.
func (p *Informers) OwnedBy(job suspend.Target) bool {
	owned := func(informer cache.SharedIndexInformer) bool {
		keys, err := informer.GetIndexer().IndexKeys(byController, controllerKey(job.Namespace, job.UID))
		return err == nil && len(keys) > 0 // there is that index
	}
	return owned(p.Live) || job.Brittle() && owned(p.Ended)
}

// byController is the index of pods by their controller.
const byController = "controller"

func controllerKey(namespace string, uid types.UID) string { return namespace + "/" + string(uid) }

// controllersOf is the key of a pod in the index.
func controllersOf(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return nil, nil
	}
	return []string{controllerKey(pod.Namespace, controller.UID)}, nil
}

// selecting returns an informer of the pods that a field selector matches.
func selecting(client kubernetes.Interface, selector string) cache.SharedIndexInformer {
	return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, 0, cache.Indexers{byController: controllersOf},
		func(options *metav1.ListOptions) { options.FieldSelector = selector })
}

// trim drops what is never read: who set which field, and what a container does, as opposed to what it requires of its node. Of 50,000 pods
// that is most of the memory. What a pod requires is bounded.
func trim(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		trimContainers(pod.Spec.Containers)
		trimContainers(pod.Spec.InitContainers)
		bounds.Pod(&pod.Spec)
		pod.Spec.EphemeralContainers = nil
	}
	return obj, nil
}

func trimContainers(containers []corev1.Container) {
	for i := range containers {
		c := &containers[i]
		c.Command, c.Args, c.Env, c.EnvFrom, c.WorkingDir, c.Lifecycle, c.SecurityContext = nil, nil, nil, nil, "", nil, nil
		c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = nil, nil, nil
		c.TerminationMessagePath, c.TerminationMessagePolicy, c.ImagePullPolicy = "", "", ""
		// NodeDeclaredFeatures requires nodes that have the options of a mount.
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return len(m.BindMountOptions) == 0 })
		if len(c.VolumeMounts) == 0 {
			c.VolumeMounts = nil
		}
	}
}

// trimEnded keeps of a pod that has ended what its gang is found by, and what the
// gang's minimum and status need.
func trimEnded(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
			OwnerReferences: pod.OwnerReferences, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			SchedulerName: pod.Spec.SchedulerName, NodeName: pod.Spec.NodeName, SchedulingGroup: pod.Spec.SchedulingGroup, Priority: pod.Spec.Priority,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if end := gang.EndOf(pod); !end.IsZero() {
		terminated := &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(end)}
		kept.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: terminated}}}
	}
	for key, value := range pod.Annotations {
		if !strings.HasPrefix(key, "kubectl.kubernetes.io/") { // may hold a whole manifest
			metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, value)
		}
	}
	return kept, nil
}
