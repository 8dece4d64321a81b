package snapshot

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a built-in kind that a snapshot holds as a typed list.
type kind struct {
	schema.GroupKind
	// version is the API version in which objects are kept and saved.
	version string
	decode  func(s *Snapshot, raw []byte) error
	// put adds an object that was read from a cluster; false if it is of another type.
	put   func(s *Snapshot, obj runtime.Object) bool
	each  func(s *Snapshot, f func(runtime.Object) error) error
	count func(s *Snapshot) int
	sort  func(s *Snapshot)
	clone func(s *Snapshot)
	equal func(s, other *Snapshot) bool
}

// object is a pointer to an API type.
type object[T any] interface {
	*T
	metav1.Object
	runtime.Object
}

func builtin[T any, P object[T]](gv schema.GroupVersion, name string, list func(*Snapshot) *[]P) kind {
	return kind{
		GroupKind: schema.GroupKind{Group: gv.Group, Kind: name}, version: gv.Version,
		decode: func(s *Snapshot, raw []byte) error {
			obj := P(new(T))
			if err := json.Unmarshal(raw, obj); err != nil {
				return err
			}
			l := list(s)
			*l = append(*l, obj)
			return nil
		},
		put: func(s *Snapshot, obj runtime.Object) bool {
			typed, ok := obj.(P)
			if ok {
				l := list(s)
				*l = append(*l, typed)
			}
			return ok
		},
		each: func(s *Snapshot, f func(runtime.Object) error) error {
			for _, obj := range *list(s) {
				if err := f(obj); err != nil {
					return err
				}
			}
			return nil
		},
		count: func(s *Snapshot) int { return len(*list(s)) },
		sort:  func(s *Snapshot) { l := list(s); *l = sorted(*l) },
		clone: func(s *Snapshot) { l := list(s); *l = slices.Clone(*l) },
		equal: func(s, other *Snapshot) bool { return sameObjects(*list(s), *list(other)) },
	}
}

// kinds are the built-in kinds in the order in which they are saved.
var kinds = []kind{
	builtin(corev1.SchemeGroupVersion, "Namespace", func(s *Snapshot) *[]*corev1.Namespace { return &s.Namespaces }),
	builtin(corev1.SchemeGroupVersion, "Node", func(s *Snapshot) *[]*corev1.Node { return &s.Nodes }),
	builtin(schedulingv1.SchemeGroupVersion, "PriorityClass", func(s *Snapshot) *[]*schedulingv1.PriorityClass { return &s.PriorityClasses }),
	builtin(corev1.SchemeGroupVersion, "ResourceQuota", func(s *Snapshot) *[]*corev1.ResourceQuota { return &s.ResourceQuotas }),
	builtin(corev1.SchemeGroupVersion, "LimitRange", func(s *Snapshot) *[]*corev1.LimitRange { return &s.LimitRanges }),
	builtin(corev1.SchemeGroupVersion, "ServiceAccount", func(s *Snapshot) *[]*corev1.ServiceAccount { return &s.ServiceAccounts }),
	builtin(appsv1.SchemeGroupVersion, "Deployment", func(s *Snapshot) *[]*appsv1.Deployment { return &s.Deployments }),
	builtin(appsv1.SchemeGroupVersion, "DaemonSet", func(s *Snapshot) *[]*appsv1.DaemonSet { return &s.DaemonSets }),
	builtin(appsv1.SchemeGroupVersion, "ReplicaSet", func(s *Snapshot) *[]*appsv1.ReplicaSet { return &s.ReplicaSets }),
	builtin(appsv1.SchemeGroupVersion, "StatefulSet", func(s *Snapshot) *[]*appsv1.StatefulSet { return &s.StatefulSets }),
	builtin(coordinationv1.SchemeGroupVersion, "Lease", func(s *Snapshot) *[]*coordinationv1.Lease { return &s.Leases }),
	builtin(storagev1.SchemeGroupVersion, "StorageClass", func(s *Snapshot) *[]*storagev1.StorageClass { return &s.StorageClasses }),
	builtin(storagev1.SchemeGroupVersion, "CSIDriver", func(s *Snapshot) *[]*storagev1.CSIDriver { return &s.CSIDrivers }),
	builtin(storagev1.SchemeGroupVersion, "CSINode", func(s *Snapshot) *[]*storagev1.CSINode { return &s.CSINodes }),
	builtin(storagev1.SchemeGroupVersion, "VolumeAttachment", func(s *Snapshot) *[]*storagev1.VolumeAttachment { return &s.VolumeAttachments }),
	builtin(corev1.SchemeGroupVersion, "PersistentVolumeClaim", func(s *Snapshot) *[]*corev1.PersistentVolumeClaim { return &s.Claims }),
	builtin(corev1.SchemeGroupVersion, "PersistentVolume", func(s *Snapshot) *[]*corev1.PersistentVolume { return &s.Volumes }),
	builtin(nodev1.SchemeGroupVersion, "RuntimeClass", func(s *Snapshot) *[]*nodev1.RuntimeClass { return &s.RuntimeClasses }),
	builtin(resourcev1.SchemeGroupVersion, "DeviceClass", func(s *Snapshot) *[]*resourcev1.DeviceClass { return &s.DeviceClasses }),
	builtin(resourcev1.SchemeGroupVersion, "ResourceSlice", func(s *Snapshot) *[]*resourcev1.ResourceSlice { return &s.ResourceSlices }),
	builtin(resourcev1.SchemeGroupVersion, "DeviceTaintRule", func(s *Snapshot) *[]*resourcev1.DeviceTaintRule { return &s.DeviceTaintRules }),
	builtin(resourcev1.SchemeGroupVersion, "ResourceClaimTemplate", func(s *Snapshot) *[]*resourcev1.ResourceClaimTemplate { return &s.ResourceClaimTemplates }),
	builtin(resourcev1.SchemeGroupVersion, "ResourceClaim", func(s *Snapshot) *[]*resourcev1.ResourceClaim { return &s.ResourceClaims }),
	builtin(policyv1.SchemeGroupVersion, "PodDisruptionBudget", func(s *Snapshot) *[]*policyv1.PodDisruptionBudget { return &s.DisruptionBudgets }),
	builtin(rbacv1.SchemeGroupVersion, "ClusterRole", func(s *Snapshot) *[]*rbacv1.ClusterRole { return &s.ClusterRoles }),
	builtin(rbacv1.SchemeGroupVersion, "ClusterRoleBinding", func(s *Snapshot) *[]*rbacv1.ClusterRoleBinding { return &s.ClusterRoleBindings }),
	builtin(batchv1.SchemeGroupVersion, "Job", func(s *Snapshot) *[]*batchv1.Job { return &s.Jobs }),
	builtin(corev1.SchemeGroupVersion, "Pod", func(s *Snapshot) *[]*corev1.Pod { return &s.Pods }),
	builtin(corev1.SchemeGroupVersion, "Event", func(s *Snapshot) *[]*corev1.Event { return &s.Events }),
}

// kindOf finds the typed list of a kind. DRA objects of v1beta1 have another shape than later ones and stay untyped.
func kindOf(gvk schema.GroupVersionKind) (kind, bool) {
	if gvk.Group == resourcev1.GroupName && gvk.Version != "v1" && gvk.Version != "v1beta2" {
		return kind{}, false
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.GroupKind == gvk.GroupKind() })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// sorted orders objects by namespace and name. Of two with the same name the newer one stays, so that the order in which
// they were read does not matter.
func sorted[P metav1.Object](list []P) []P {
	type named struct { // what is compared stands together: a cluster has many pods, each elsewhere in memory
		namespace, name string
		read            int
		obj             P
	}
	all := make([]named, 0, len(list))
	for i, obj := range list {
		all = append(all, named{obj.GetNamespace(), obj.GetName(), i, obj})
	}
	slices.SortFunc(all, func(a, b named) int {
		if c := cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name)); c != 0 {
			return c // most are distinguished by that, and versions are parsed
		}
		return cmp.Or(cmp.Compare(revision(b.obj), revision(a.obj)), cmp.Compare(a.obj.GetUID(), b.obj.GetUID()), cmp.Compare(a.read, b.read))
	})
	all = slices.CompactFunc(all, func(a, b named) bool { return a.name == b.name && a.namespace == b.namespace })
	clear(list[len(all):])
	for i, n := range all {
		list[i] = n.obj
	}
	return list[:len(all)]
}

// revision reads a resourceVersion as the number that it is in practice; 0 if it is none.
func revision(obj metav1.Object) uint64 {
	n, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
