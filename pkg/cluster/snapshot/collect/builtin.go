package collect

import (
	"bytes"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/intern"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/page"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
)

// notOfNodes leaves out the leases by which kubelets report that they are alive: the nodes' conditions report it too.
const notOfNodes = "metadata.namespace!=" + corev1.NamespaceNodeLease

// builtin are the kinds of Kubernetes itself, read in protobuf; the largest first. Pods that have ended hold nothing, but a
// job's own members count when they have succeeded, so they are read too.
func builtin() []resource {
	return []resource{
		podResource(),
		of("", "v1", "nodes", "Node", cluster, readNodes),
		of("batch", "v1", "jobs", "Job", everywhere, readBatchJobs),
		typed[appsv1.ReplicaSet]("apps", "v1", "replicasets", everywhere, ownerFields()),
		typed[appsv1.StatefulSet]("apps", "v1", "statefulsets", everywhere, controllerFields()),
		typed[appsv1.Deployment]("apps", "v1", "deployments", everywhere, controllerFields()),
		typed[appsv1.DaemonSet]("apps", "v1", "daemonsets", everywhere, controllerFields()),
		typed[corev1.Event]("", "v1", "events", own, nothingMore()),
		typed[corev1.Namespace]("", "v1", "namespaces", cluster, nothingMore()),
		typed[corev1.ResourceQuota]("", "v1", "resourcequotas", own, nothingMore()),
		typed[corev1.LimitRange]("", "v1", "limitranges", own, nothingMore()),
		typed[corev1.ServiceAccount]("", "v1", "serviceaccounts", own, nothingMore()),
		typed[corev1.PersistentVolumeClaim]("", "v1", "persistentvolumeclaims", everywhere, nothingMore()),
		typed[corev1.PersistentVolume]("", "v1", "persistentvolumes", cluster, nothingMore()),
		typed[coordinationv1.Lease]("coordination.k8s.io", "v1", "leases", everywhere, nothingMore()).where(notOfNodes),
		typed[storagev1.StorageClass]("storage.k8s.io", "v1", "storageclasses", cluster, nothingMore()),
		typed[storagev1.CSINode]("storage.k8s.io", "v1", "csinodes", cluster, csiNodeFields()),
		typed[storagev1.CSIDriver]("storage.k8s.io", "v1", "csidrivers", cluster, nothingMore()),
		typed[storagev1.VolumeAttachment]("storage.k8s.io", "v1", "volumeattachments", cluster, nothingMore()),
		typed[schedulingv1.PriorityClass]("scheduling.k8s.io", "v1", "priorityclasses", cluster, nothingMore()),
		typed[policyv1.PodDisruptionBudget]("policy", "v1", "poddisruptionbudgets", everywhere, nothingMore()),
		typed[rbacv1.ClusterRole]("rbac.authorization.k8s.io", "v1", "clusterroles", cluster, roleFields()),
		typed[rbacv1.ClusterRoleBinding]("rbac.authorization.k8s.io", "v1", "clusterrolebindings", cluster, roleFields()),
		typed[nodev1.RuntimeClass]("node.k8s.io", "v1", "runtimeclasses", cluster, nothingMore()),
		typed[resourcev1.ResourceClaim]("resource.k8s.io", "v1", "resourceclaims", everywhere, nothingMore()),
		typed[resourcev1.ResourceClaimTemplate]("resource.k8s.io", "v1", "resourceclaimtemplates", own, nothingMore()),
		typed[resourcev1.ResourceSlice]("resource.k8s.io", "v1", "resourceslices", cluster, nothingMore()),
		typed[resourcev1.DeviceTaintRule]("resource.k8s.io", "v1", "devicetaintrules", cluster, nothingMore()),
		typed[resourcev1.DeviceClass]("resource.k8s.io", "v1", "deviceclasses", cluster, nothingMore()),
	}
}

func of(group, version, name, kind string, scope scope, decode func(Options) (decoder, error)) resource {
	return resource{
		gvr: schema.GroupVersionResource{Group: group, Version: version, Resource: name}, kind: kind, accept: protobufOrJSON,
		namespaced: scope != cluster, own: scope == own, decode: decode,
	}
}

func typed[T any, P message[T]](group, version, name string, scope scope, without prune.Fields) resource {
	return of(group, version, name, reflect.TypeFor[T]().Name(), scope, kindOf[T, P](without))
}

// where adds a field selector.
func (r resource) where(selector string) resource {
	r.selector = selector
	return r
}

// readNodes decodes nodes.
func readNodes(Options) (decoder, error) {
	fields, err := nodeFields().ForType(reflect.TypeFor[corev1.Node]())
	if err != nil {
		return nil, err
	}
	pool, kept := intern.NewPool(), intern.Kept{Annotation: keptOfNode, Condition: hasNodeNews}
	return func(item page.Item) (runtime.Object, error) {
		if !item.Protobuf {
			return fromJSON(item.Raw, nodeFields(), &corev1.Node{})
		}
		raw, err := fields.Apply(item.Raw)
		if err != nil {
			return nil, err
		}
		return pool.Node(raw, kept)
	}, nil
}

// keptOfNode leaves out what drivers note for themselves: it is different on every node.
func keptOfNode(key []byte) bool {
	return keptOfCompact(key) && !bytes.HasPrefix(key, []byte("csi.volume.kubernetes.io/"))
}

// hasNodeNews reports whether a condition of a node has more than that a trouble which every kubelet looks for is not there.
func hasNodeNews(data []byte) bool {
	kind, status, err := condition(data)
	if err != nil || string(status) != string(corev1.ConditionFalse) {
		return true
	}
	switch corev1.NodeConditionType(kind) {
	case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
		return false
	default:
		return true
	}
}
