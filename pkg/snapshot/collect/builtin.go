package collect

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	nodeclient "k8s.io/client-go/kubernetes/typed/node/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	schedulingclient "k8s.io/client-go/kubernetes/typed/scheduling/v1"
	storageclient "k8s.io/client-go/kubernetes/typed/storage/v1"

	"github.com/gangctl/gangctl/pkg/kube"
)

// builtin are the kinds of Kubernetes itself, read in protobuf. Pods that have ended hold nothing, but a job's own members
// count when they have succeeded, so they are read too.
func builtin() []resource {
	return []resource{
		typed[*corev1.NamespaceList]("", "v1", "namespaces", "Namespace", cluster, func(c *kube.Client, _ string) coreclient.NamespaceInterface { return c.Typed.CoreV1().Namespaces() }),
		typed[*corev1.NodeList]("", "v1", "nodes", "Node", cluster, func(c *kube.Client, _ string) coreclient.NodeInterface { return c.Typed.CoreV1().Nodes() }),
		typed[*corev1.PodList]("", "v1", "pods", "Pod", everywhere, func(c *kube.Client, ns string) coreclient.PodInterface { return c.Typed.CoreV1().Pods(ns) }),
		typed[*corev1.EventList]("", "v1", "events", "Event", own, func(c *kube.Client, ns string) coreclient.EventInterface { return c.Typed.CoreV1().Events(ns) }),
		typed[*corev1.ResourceQuotaList]("", "v1", "resourcequotas", "ResourceQuota", own, func(c *kube.Client, ns string) coreclient.ResourceQuotaInterface {
			return c.Typed.CoreV1().ResourceQuotas(ns)
		}),
		typed[*corev1.LimitRangeList]("", "v1", "limitranges", "LimitRange", own, func(c *kube.Client, ns string) coreclient.LimitRangeInterface {
			return c.Typed.CoreV1().LimitRanges(ns)
		}),
		typed[*corev1.ServiceAccountList]("", "v1", "serviceaccounts", "ServiceAccount", own, func(c *kube.Client, ns string) coreclient.ServiceAccountInterface {
			return c.Typed.CoreV1().ServiceAccounts(ns)
		}),
		typed[*corev1.PersistentVolumeClaimList]("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", everywhere, func(c *kube.Client, ns string) coreclient.PersistentVolumeClaimInterface {
			return c.Typed.CoreV1().PersistentVolumeClaims(ns)
		}),
		typed[*corev1.PersistentVolumeList]("", "v1", "persistentvolumes", "PersistentVolume", cluster, func(c *kube.Client, _ string) coreclient.PersistentVolumeInterface {
			return c.Typed.CoreV1().PersistentVolumes()
		}),
		typed[*appsv1.DeploymentList]("apps", "v1", "deployments", "Deployment", everywhere, func(c *kube.Client, ns string) appsclient.DeploymentInterface {
			return c.Typed.AppsV1().Deployments(ns)
		}),
		typed[*appsv1.DaemonSetList]("apps", "v1", "daemonsets", "DaemonSet", everywhere, func(c *kube.Client, ns string) appsclient.DaemonSetInterface { return c.Typed.AppsV1().DaemonSets(ns) }),
		typed[*appsv1.ReplicaSetList]("apps", "v1", "replicasets", "ReplicaSet", everywhere, func(c *kube.Client, ns string) appsclient.ReplicaSetInterface {
			return c.Typed.AppsV1().ReplicaSets(ns)
		}),
		typed[*batchv1.JobList]("batch", "v1", "jobs", "Job", everywhere, func(c *kube.Client, ns string) batchclient.JobInterface { return c.Typed.BatchV1().Jobs(ns) }),
		typed[*coordinationv1.LeaseList]("coordination.k8s.io", "v1", "leases", "Lease", everywhere, func(c *kube.Client, ns string) coordinationclient.LeaseInterface {
			return c.Typed.CoordinationV1().Leases(ns)
		}),
		typed[*storagev1.StorageClassList]("storage.k8s.io", "v1", "storageclasses", "StorageClass", cluster, func(c *kube.Client, _ string) storageclient.StorageClassInterface {
			return c.Typed.StorageV1().StorageClasses()
		}),
		typed[*storagev1.CSINodeList]("storage.k8s.io", "v1", "csinodes", "CSINode", cluster, func(c *kube.Client, _ string) storageclient.CSINodeInterface { return c.Typed.StorageV1().CSINodes() }),
		typed[*storagev1.CSIDriverList]("storage.k8s.io", "v1", "csidrivers", "CSIDriver", cluster, func(c *kube.Client, _ string) storageclient.CSIDriverInterface {
			return c.Typed.StorageV1().CSIDrivers()
		}),
		typed[*storagev1.VolumeAttachmentList]("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", cluster, func(c *kube.Client, _ string) storageclient.VolumeAttachmentInterface {
			return c.Typed.StorageV1().VolumeAttachments()
		}),
		typed[*schedulingv1.PriorityClassList]("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", cluster, func(c *kube.Client, _ string) schedulingclient.PriorityClassInterface {
			return c.Typed.SchedulingV1().PriorityClasses()
		}),
		typed[*policyv1.PodDisruptionBudgetList]("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", everywhere, func(c *kube.Client, ns string) policyclient.PodDisruptionBudgetInterface {
			return c.Typed.PolicyV1().PodDisruptionBudgets(ns)
		}),
		typed[*nodev1.RuntimeClassList]("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", cluster, func(c *kube.Client, _ string) nodeclient.RuntimeClassInterface {
			return c.Typed.NodeV1().RuntimeClasses()
		}),
		typed[*resourcev1.ResourceClaimList]("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", everywhere, func(c *kube.Client, ns string) resourceclient.ResourceClaimInterface {
			return c.Typed.ResourceV1().ResourceClaims(ns)
		}),
		typed[*resourcev1.ResourceClaimTemplateList]("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", own, func(c *kube.Client, ns string) resourceclient.ResourceClaimTemplateInterface {
			return c.Typed.ResourceV1().ResourceClaimTemplates(ns)
		}),
		typed[*resourcev1.ResourceSliceList]("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", cluster, func(c *kube.Client, _ string) resourceclient.ResourceSliceInterface {
			return c.Typed.ResourceV1().ResourceSlices()
		}),
		typed[*resourcev1.DeviceClassList]("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", cluster, func(c *kube.Client, _ string) resourceclient.DeviceClassInterface {
			return c.Typed.ResourceV1().DeviceClasses()
		}),
	}
}
