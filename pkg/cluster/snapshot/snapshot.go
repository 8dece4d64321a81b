// Package snapshot holds a cluster as one value: everything that an answer is computed from, with the moment it was
// taken. A snapshot is read from a file or from a cluster (package collect), and never changes once it is complete; the
// methods that change something return another one.
package snapshot

import (
	"slices"
	"strings"
	"time"

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is a cluster at one moment. Every list is sorted by namespace and name.
type Snapshot struct {
	// At is "now" for every age that is computed from the snapshot.
	At time.Time
	// Server is what is known of the API server.
	Server Server
	// Caller is who took the snapshot, as the API server calls them; known only where something was denied.
	Caller string
	// Schedulers are the schedulerNames of the scheduler that took the snapshot; none where another user took it.
	Schedulers []string
	// Denied are the requests that the caller was not allowed to make.
	Denied []Denial
	// Skipped are the documents of its file that are no objects of Kubernetes, a line each.
	Skipped []string
	// Partial reports that it was read from a file without a header and without nodes: a user chose what is in it, and left out the nodes.
	Partial bool
	// Probes are the answers to creates with dryRun=All, made when the snapshot was taken.
	Probes []Probe
	// Unanswered are such creates whose answer showed nothing of the object, because the API server or the connection to it failed.
	Unanswered []Unanswered

	Nodes                  []*corev1.Node
	Pods                   []*corev1.Pod
	Namespaces             []*corev1.Namespace
	Events                 []*corev1.Event
	ResourceQuotas         []*corev1.ResourceQuota
	LimitRanges            []*corev1.LimitRange
	Claims                 []*corev1.PersistentVolumeClaim
	Volumes                []*corev1.PersistentVolume
	ServiceAccounts        []*corev1.ServiceAccount
	Deployments            []*appsv1.Deployment
	DaemonSets             []*appsv1.DaemonSet
	ReplicaSets            []*appsv1.ReplicaSet
	StatefulSets           []*appsv1.StatefulSet
	Jobs                   []*batchv1.Job
	StorageClasses         []*storagev1.StorageClass
	CSIDrivers             []*storagev1.CSIDriver
	CSINodes               []*storagev1.CSINode
	VolumeAttachments      []*storagev1.VolumeAttachment
	PriorityClasses        []*schedulingv1.PriorityClass
	DisruptionBudgets      []*policyv1.PodDisruptionBudget
	Leases                 []*coordinationv1.Lease
	RuntimeClasses         []*nodev1.RuntimeClass
	ResourceClaimTemplates []*resourcev1.ResourceClaimTemplate
	ResourceClaims         []*resourcev1.ResourceClaim
	ResourceSlices         []*resourcev1.ResourceSlice
	DeviceTaintRules       []*resourcev1.DeviceTaintRule
	DeviceClasses          []*resourcev1.DeviceClass
	// ClusterRoles and ClusterRoleBindings are what accounts may do in all namespaces.
	ClusterRoles        []*rbacv1.ClusterRole
	ClusterRoleBindings []*rbacv1.ClusterRoleBinding

	// Custom holds every other object by its kind.
	Custom map[schema.GroupKind][]*unstructured.Unstructured

	// Injected is what admission puts into pods of a job whose pods are assumed to be made again. It is in no file: there the pods show it.
	Injected map[InjectedKey]*corev1.PodSpec
}

// InjectedKey is a role of a job.
type InjectedKey struct {
	Namespace string
	Job       types.UID
	Role      string
}

// Server describes the API server.
type Server struct {
	// Version is the git version, such as v1.34.2; empty if unknown.
	Version string `json:"version,omitempty"`
	// Resources is what discovery serves beyond the built-in kinds, as RESOURCE.GROUP/VERSION. Nil if unknown.
	Resources []string `json:"resources,omitempty"`
}

// Denial is a request that the caller was not allowed to make: a list, unless Verb names another one.
type Denial struct {
	// Resource is RESOURCE or RESOURCE.GROUP.
	Resource string `json:"resource"`
	// ExceptNamespaces are the namespaces in which it was allowed.
	ExceptNamespaces []string `json:"exceptNamespaces,omitempty"`
	// Verb is empty for list.
	Verb string `json:"verb,omitempty"`
	// Message is how the API server put it, if that is known.
	Message string `json:"message,omitempty"`
}

// VerbCreate is the verb of a denied probe.
const VerbCreate = "create"

// Probe is the answer to one create with dryRun=All.
type Probe struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Code is the HTTP status; 2xx means that the object would have been accepted.
	Code    int    `json:"code"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Unanswered is one create with dryRun=All from which nothing was learnt about the object.
type Unanswered struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Message is why there is no answer.
	Message string `json:"message"`
}

// Accepted reports whether the object would have been created.
func (p Probe) Accepted() bool { return p.Code >= 200 && p.Code < 300 }

// CanList reports whether objects of a resource (RESOURCE or RESOURCE.GROUP) in the namespace are in the snapshot, if there are any. An
// empty namespace means all of them.
func (s *Snapshot) CanList(resource, namespace string) bool {
	return s.Denial("", resource, namespace) == nil
}

// Denial is the refusal of a verb (empty for list) on a resource in a namespace, empty for all of them; nil if there was none.
func (s *Snapshot) Denial(verb, resource, namespace string) *Denial {
	for i, d := range s.Denied {
		if d.Resource == resource && d.Verb == verb && (namespace == "" || !slices.Contains(d.ExceptNamespaces, namespace)) {
			return &s.Denied[i]
		}
	}
	return nil
}

// Clone returns a snapshot whose lists can be changed without changing s. The objects are shared.
func (s *Snapshot) Clone() *Snapshot {
	c := *s
	for _, k := range kinds {
		k.clone(&c)
	}
	c.Denied, c.Probes, c.Unanswered, c.Skipped = slices.Clone(s.Denied), slices.Clone(s.Probes), slices.Clone(s.Unanswered), slices.Clone(s.Skipped)
	c.Custom = make(map[schema.GroupKind][]*unstructured.Unstructured, len(s.Custom))
	for kind, list := range s.Custom {
		c.Custom[kind] = slices.Clone(list)
	}
	return &c
}

// Serves reports whether the API server serves a resource that is not built in, in any version. Where discovery was not
// recorded, the kinds that occur in the snapshot are what is known.
func (s *Snapshot) Serves(resource schema.GroupResource, kind string) bool {
	if s.Server.Resources == nil {
		return len(s.Custom[schema.GroupKind{Group: resource.Group, Kind: kind}]) > 0
	}
	for _, served := range s.Server.Resources {
		name, _, _ := strings.Cut(served, "/")
		if name == resource.String() {
			return true
		}
	}
	return false
}
