package placement

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/component-helpers/storage/volume"
)

// claim is a PersistentVolumeClaim that a pod uses.
type claim struct {
	pvc     *corev1.PersistentVolumeClaim // nil if it does not exist
	pv      *corev1.PersistentVolume      // the bound volume; nil if the claim waits for its first consumer
	class   *storagev1.StorageClass       // of an unbound claim
	problem string                        // why no pod can use it now
	planned bool                          // it does not exist yet
	own     bool                          // it is of this pod alone, made from a template in the pod
}

// claims looks up the claims of a pod. A generic ephemeral claim that does not exist yet is as its template says.
func (c *Cluster) claims(pod *corev1.Pod) []claim {
	var out []claim
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			name := v.PersistentVolumeClaim.ClaimName
			out = append(out, c.claim(name, find(c.objects.PersistentVolumeClaims, pod.Namespace, name)))
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			name := ephemeral.VolumeClaimName(pod, v)
			k := claim{}
			if pvc := find(c.objects.PersistentVolumeClaims, pod.Namespace, name); pvc != nil {
				k = c.claim(name, pvc)
			} else {
				k = c.plan(name, pod.Namespace, v.Ephemeral.VolumeClaimTemplate.Spec)
			}
			k.own = true
			out = append(out, k)
		}
	}
	return out
}

// plan judges a claim that will be made when its pod is there: of the default class if it names none, and of a class that does not
// wait for a consumer it will have a volume by the time the pod is placed.
func (c *Cluster) plan(name, namespace string, spec corev1.PersistentVolumeClaimSpec) claim {
	pvc := &corev1.PersistentVolumeClaim{Spec: *spec.DeepCopy()}
	pvc.Namespace, pvc.Name = namespace, name
	if spec.StorageClassName == nil {
		pvc.Spec.StorageClassName = c.defaultClass()
	}
	k := c.claim(name, pvc)
	k.planned = true
	if k.class != nil && k.class.Provisioner != volume.NotSupportedProvisioner {
		k.problem = ""
	}
	return k
}

// defaultClass is the newest StorageClass that is marked as the default one, nil if there is none.
func (c *Cluster) defaultClass() *string {
	var best *storagev1.StorageClass
	for _, class := range c.objects.StorageClasses {
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" && (best == nil || best.CreationTimestamp.Before(&class.CreationTimestamp)) {
			best = class
		}
	}
	if best == nil {
		return nil
	}
	return &best.Name
}

// claim judges a claim as the volume binding plugin does before it looks at nodes.
func (c *Cluster) claim(name string, pvc *corev1.PersistentVolumeClaim) claim {
	k := claim{pvc: pvc}
	switch {
	case pvc == nil:
		k.problem = fmt.Sprintf("claim %s not found", name)
	case pvc.Status.Phase == corev1.ClaimLost:
		k.problem = fmt.Sprintf("claim %s has lost its volume %s", name, pvc.Spec.VolumeName)
	case pvc.DeletionTimestamp != nil:
		k.problem = fmt.Sprintf("claim %s is being deleted", name)
	case pvc.Spec.VolumeName != "":
		k.pv = find(c.objects.PersistentVolumes, "", pvc.Spec.VolumeName)
		_, completed := pvc.Annotations[volume.AnnBindCompleted]
		switch {
		case k.pv == nil:
			k.problem = fmt.Sprintf("volume %s of claim %s not found", pvc.Spec.VolumeName, name)
		case !completed && pvc.Status.Phase != corev1.ClaimBound:
			k.problem = fmt.Sprintf("claim %s is not bound to volume %s yet", name, pvc.Spec.VolumeName)
		}
	default:
		class := volume.GetPersistentVolumeClaimClass(pvc)
		k.class = find(c.objects.StorageClasses, "", class)
		switch {
		case class == "":
			k.problem = fmt.Sprintf("claim %s is unbound and names no StorageClass", name)
		case k.class == nil:
			k.problem = fmt.Sprintf("StorageClass %s of claim %s not found", class, name)
		case k.class.VolumeBindingMode == nil || *k.class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer:
			k.problem = fmt.Sprintf("claim %s is unbound", name)
		}
	}
	return k
}

// find returns the object of that name, nil if there is none.
func find[T any, P interface {
	*T
	metav1.Object
}](list []P, namespace, name string) P {
	for _, o := range list {
		if o.GetName() == name && o.GetNamespace() == namespace {
			return o
		}
	}
	return nil
}

// usable rejects every node if a claim of the pod cannot be used at all.
func (c *Cluster) usable(pod *corev1.Pod) check {
	var problems []string
	for _, k := range c.claims(pod) {
		if k.problem != "" {
			problems = append(problems, k.problem)
		}
	}
	for _, key := range sets.List(c.exclusiveClaims(pod)) {
		if (snapshot{c: c}).IsPVCUsedByPods(key) {
			problems = append(problems, fmt.Sprintf("ReadWriteOncePod claim %s is in use", strings.TrimPrefix(key, pod.Namespace+"/")))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	found := []Violation{{Constraint: VolumeClaim, Detail: strings.Join(problems, "; ")}}
	return func(*node) []Violation { return found }
}

// exclusiveClaims returns the ReadWriteOncePod claims of a pod, as namespace/name.
func (c *Cluster) exclusiveClaims(pod *corev1.Pod) sets.Set[string] {
	out := sets.New[string]()
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		pvc := find(c.objects.PersistentVolumeClaims, pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		if pvc != nil && slices.Contains(pvc.Spec.AccessModes, corev1.ReadWriteOncePod) {
			out.Insert(pvc.Namespace + "/" + pvc.Name)
		}
	}
	return out
}
