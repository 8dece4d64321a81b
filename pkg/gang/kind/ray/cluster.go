// Package ray reads RayClusters and RayJobs (ray.io), as the operator of KubeRay runs them. The head is a role of one member, and each
// group of workers one more. A RayJob has its members through the RayCluster that is made of it.
package ray

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	// Group is the API group, and Version the version of it that every release since 1.0 serves.
	Group   = "ray.io"
	Version = "v1"
	// ClusterKind and JobKind are the kinds, and ClusterResource and JobResource the plurals under which they are served.
	ClusterKind, ClusterResource = "RayCluster", "rayclusters"
	JobKind, JobResource         = "RayJob", "rayjobs"
	// ServiceKind is the kind of what serves from a RayCluster, and replaces it by another one when its spec changes.
	ServiceKind = "RayService"
	// ControllerName is who manages an object that names no other controller.
	ControllerName = "ray.io/kuberay-operator"
	// GangLabel on a RayCluster or RayJob leaves its gang to the operator, if that runs with --batch-scheduler.
	GangLabel = "ray.io/gang-scheduling-enabled"
	// Head is the role of the one member that the workers connect to.
	Head = "head"
	// Submitter is what the Job of a RayJob does, which is made in the usual mode of submission (K8sJobMode): nothing runs on the members before its pod does.
	Submitter = "submitter"
)

// Labels of pods.
const (
	clusterLabel = "ray.io/cluster"
	groupLabel   = "ray.io/group"
	typeLabel    = "ray.io/node-type"
	nodeLabel    = "ray.io/is-ray-node"
	// headGroup is the group of the head.
	headGroup = "headgroup"
)

// ClusterReader reads RayClusters.
func ClusterReader() gang.JobReader {
	return gang.JobReader{
		GroupKind: schema.GroupKind{Group: Group, Kind: ClusterKind}, Resource: ClusterResource, Versions: []string{Version},
		Names: []string{"raycluster", "rayclusters", "raycl"},
		Read:  readCluster, NameLabels: []string{clusterLabel}, RoleIndexOf: roleIndexOf, Labels: labels, Template: template("spec"), WriteRoles: writeRoles("spec"),
		GangLabel: GangLabel, Controller: controller(),
	}
}

func controller() gang.Controller {
	return gang.Controller{Name: "kuberay-operator", Images: []string{"kuberay/operator", "kuberay-operator"}, Leases: []string{"ray-operator-leader"},
		Install: "kubectl create -k 'https://github.com/ray-project/kuberay.git/ray-operator/config/default?ref=v1.4.2'", ManagedAs: []string{ControllerName}}
}

// WrittenCluster is what is read of what users write of a RayCluster.
type WrittenCluster struct {
	Spec clusterSpec `json:"spec,omitempty"`
}

type clusterSpec struct {
	Suspend           bool               `json:"suspend,omitempty"`
	Autoscaling       bool               `json:"enableInTreeAutoscaling,omitempty"`
	AutoscalerOptions *autoscalerOptions `json:"autoscalerOptions,omitempty"`
	HeadGroupSpec     headGroupSpec      `json:"headGroupSpec,omitempty"`
	WorkerGroupSpecs  []workerGroup      `json:"workerGroupSpecs,omitempty"`
}

type autoscalerOptions struct {
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

type headGroupSpec struct {
	Template corev1.PodTemplateSpec `json:"template,omitempty"`
}

// workerGroup is a number of replicas that are alike, of one host or several each: a host is a pod.
type workerGroup struct {
	GroupName   string                 `json:"groupName"`
	Suspend     bool                   `json:"suspend,omitempty"`
	Replicas    *int32                 `json:"replicas,omitempty"`
	MinReplicas *int32                 `json:"minReplicas,omitempty"`
	MaxReplicas *int32                 `json:"maxReplicas,omitempty"`
	NumOfHosts  int32                  `json:"numOfHosts,omitempty"`
	Template    corev1.PodTemplateSpec `json:"template,omitempty"`
}

// Names longer than these the operator refuses: it makes longer ones of them.
const (
	maxClusterName = 53
	maxJobName     = 47
)

// tooLong is what is wrong with a name, or nothing.
func tooLong(kind, name string, most int) []string {
	if len(name) <= most {
		return nil
	}
	return []string{fmt.Sprintf("name %q has %d characters: KubeRay takes a %s with at most %d", name, len(name), kind, most)}
}

// JobNameProblem is why the operator would not take a name of a RayJob; empty if it would.
func JobNameProblem(name string) string { return strings.Join(tooLong(JobKind, name, maxJobName), "") }

func readCluster(u *unstructured.Unstructured) (gang.Job, error) {
	job := gang.Job{Kind: u.GroupVersionKind(), Meta: gang.MetaOf(u)}
	f := &gang.Fields{Object: u}
	var s clusterSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.Map("spec"), &s); err != nil {
		return job, fmt.Errorf("decode spec: %w", err)
	}
	job.Suspended, job.Problems = s.Suspend, tooLong(ClusterKind, job.Meta.Name, maxClusterName)
	s.readInto(&job, "spec")
	job.Seen = f.String("status", "state") != "" || len(f.List("status", "conditions")) > 0
	return job, f.Err
}

// readInto reads the roles, and the minimum of a cluster that may grow and shrink. Path is where the spec is in the object.
func (s clusterSpec) readInto(job *gang.Job, path string) {
	head := gang.Role{Name: Head, Replicas: 1, Template: s.HeadGroupSpec.Template}
	if len(head.Template.Spec.Containers) == 0 {
		job.Problems = append(job.Problems, fmt.Sprintf("%s.headGroupSpec.template has no containers", path))
	} else {
		head.Main = head.Template.Spec.Containers[0].Name
		if s.Autoscaling {
			head.Template = withAutoscaler(head.Template, s.AutoscalerOptions)
		}
	}
	job.Roles = append(job.Roles, head)
	least, seen := int32(1), map[string]bool{Head: true}
	for _, group := range s.WorkerGroupSpecs {
		role, minimum, problem := group.role(s.Autoscaling)
		switch {
		case seen[strings.ToLower(group.GroupName)] && strings.EqualFold(group.GroupName, Head):
			problem = fmt.Sprintf("a group of workers is called %q, which is what gangctl calls the head", group.GroupName)
		case seen[strings.ToLower(group.GroupName)]:
			problem = fmt.Sprintf("two groups are called %q", group.GroupName)
		default:
			seen[strings.ToLower(group.GroupName)] = true
			job.Roles, least = append(job.Roles, role), gang.Sum(least, minimum)
		}
		if problem != "" {
			job.Problems = append(job.Problems, fmt.Sprintf("%s.workerGroupSpecs: %s", path, problem))
		}
	}
	if s.Autoscaling && least < job.Total() {
		job.MinMember = &least
	}
}

// role is what the group is a role of, the least number of its members, and what is wrong with it; "" if nothing is. The numbers are the
// operator's: replicas within minReplicas and maxReplicas, each of as many pods as it has hosts.
func (g workerGroup) role(autoscaling bool) (role gang.Role, least int32, problem string) {
	role = gang.Role{Name: g.GroupName, Template: g.Template}
	switch {
	case g.GroupName == "":
		return role, 0, "a group has no groupName"
	case len(g.Template.Spec.Containers) == 0:
		return role, 0, fmt.Sprintf("the template of %s has no containers", g.GroupName)
	}
	role.Main = g.Template.Spec.Containers[0].Name
	low, high := valueOr(g.MinReplicas, 0), valueOr(g.MaxReplicas, math.MaxInt32)
	switch n := valueOr(g.Replicas, low); {
	case n < 0 || low < 0:
		return role, 0, fmt.Sprintf("replicas and minReplicas of %s must be 0 or more", g.GroupName)
	case high < low:
		return role, 0, fmt.Sprintf("minReplicas of %s is %d, and maxReplicas %d", g.GroupName, low, high)
	case g.Suspend:
	default:
		hosts := int64(max(g.NumOfHosts, 1))
		total := int64(min(max(n, low), high)) * hosts
		if total > math.MaxInt32 {
			return role, 0, fmt.Sprintf("%d pods of %s are more than a RayCluster may have", total, g.GroupName)
		}
		role.Replicas, role.Multiple, least = int32(total), int32(hosts), int32(total)
		if autoscaling {
			least = int32(int64(low) * hosts) // no more than total
		}
	}
	return role, least, ""
}

func valueOr(n *int32, otherwise int32) int32 {
	if n == nil {
		return otherwise
	}
	return *n
}

// Autoscales reports whether a RayCluster, or that of a RayJob, changes its size by itself.
func Autoscales(u *unstructured.Unstructured) bool {
	for _, path := range [][]string{{"spec"}, {"spec", "rayClusterSpec"}} {
		if on, _, err := unstructured.NestedBool(u.Object, append(path, "enableInTreeAutoscaling")...); on && err == nil {
			return true
		}
	}
	return false
}

// autoscaler is the container that the operator adds to the head of a cluster that may grow.
const autoscaler = "autoscaler"

// withAutoscaler is the template of a head with the autoscaler, which requests what the operator gives it.
func withAutoscaler(head corev1.PodTemplateSpec, options *autoscalerOptions) corev1.PodTemplateSpec {
	c := corev1.Container{Name: autoscaler}
	if options != nil && options.Resources != nil {
		c.Resources = *options.Resources
	} else {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("512Mi")}
		c.Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
	all := head.Spec.Containers
	head.Spec.Containers = append(all[:len(all):len(all)], c)
	return head
}

// roleIndexOf reads the role. Pods of a group have random names, and no index.
func roleIndexOf(_ *gang.Job, pod *corev1.Pod) (gang.RoleIndex, bool) {
	switch pod.Labels[typeLabel] {
	case "head":
		return gang.RoleIndex{Role: Head, Index: -1}, true
	case "worker":
		return gang.RoleIndex{Role: strings.ToLower(pod.Labels[groupLabel]), Index: -1}, true
	}
	return gang.RoleIndex{}, false
}

// CleansUp reports whether a pod clears the Redis of a RayCluster that is being deleted. The operator makes it of the template of the head, so that it
// names the gang, of which no other pod is left.
func CleansUp(pod *corev1.Pod) bool { return pod.Labels[typeLabel] == "redis-cleanup" }

// labels are those of a pod that constraints may select by. That of the cluster is not known of a RayJob without one.
func labels(job *gang.Job, p gang.RoleIndex) map[string]string {
	all := map[string]string{nodeLabel: "yes", typeLabel: "worker", groupLabel: p.Role}
	if p.Role == Head {
		all[typeLabel], all[groupLabel] = "head", headGroup
	}
	if name := job.NameInLabels(); name != "" {
		all[clusterLabel] = name
	}
	return all
}

// template is where the pods of a role are, in a spec at a path.
func template(spec ...string) func(role string) []string {
	return func(role string) []string {
		at := append([]string{}, spec...)
		if role == Head {
			return append(at, "headGroupSpec", "template")
		}
		return append(at, "workerGroupSpecs", role, "template")
	}
}
