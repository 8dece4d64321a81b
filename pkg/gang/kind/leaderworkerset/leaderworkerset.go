// Package leaderworkerset reads LeaderWorkerSets (leaderworkerset.x-k8s.io): services of several replicas, each of which is a leader with
// workers, and a gang by itself. What they run does not end.
package leaderworkerset

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	// Group is the API group, and Version the only version of it that is served.
	Group   = "leaderworkerset.x-k8s.io"
	Version = "v1"
	// Kind is what a LeaderWorkerSet is called, and Resource the plural under which it is served.
	Kind, Resource = "LeaderWorkerSet", "leaderworkersets"
	// Leader and Worker are the roles.
	Leader, Worker = "leader", "worker"
)

// Labels and annotations of pods, all of which the controller writes.
const (
	// NameLabel names the LeaderWorkerSet, GroupIndexLabel the replica, and RevisionLabel the revision of the templates.
	NameLabel       = "leaderworkerset.sigs.k8s.io/name"
	GroupIndexLabel = "leaderworkerset.sigs.k8s.io/group-index"
	RevisionLabel   = "leaderworkerset.sigs.k8s.io/template-revision-hash"
	// WorkerIndexLabel is the place in the replica, which is 0 for the leader.
	WorkerIndexLabel = "leaderworkerset.sigs.k8s.io/worker-index"
	// SizeAnnotation is how many members a replica has.
	SizeAnnotation = "leaderworkerset.sigs.k8s.io/size"
	// ExclusiveAnnotation gives each replica a topology domain for itself, which the node of its leader decides. The LeaderWorkerSet has it, too.
	ExclusiveAnnotation = "leaderworkerset.sigs.k8s.io/exclusive-topology"
	// groupKeyLabel is a hash of the replica's name.
	groupKeyLabel = "leaderworkerset.sigs.k8s.io/group-key"
	// The same of the groups within replicas; their size and type are annotations.
	subgroupExclusiveAnnotation = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
	subgroupIndexLabel          = "leaderworkerset.sigs.k8s.io/subgroup-index"
	subgroupKeyLabel            = "leaderworkerset.sigs.k8s.io/subgroup-key"
	subgroupSizeAnnotation      = "leaderworkerset.sigs.k8s.io/subgroup-size"
	subgroupTypeAnnotation      = "leaderworkerset.sigs.k8s.io/subgroup-policy-type"
)

// leaderExcluded is the type of subgroups of which the leader is in none.
const leaderExcluded = "LeaderExcluded"

// labelPrefix begins all labels and annotations of the controller.
const labelPrefix = "leaderworkerset.sigs.k8s.io/"

// Reader reads this kind.
func Reader() gang.JobReader {
	return gang.JobReader{
		GroupKind: schema.GroupKind{Group: Group, Kind: Kind}, Resource: Resource, Versions: []string{Version},
		Names: []string{"leaderworkerset", "leaderworkersets", "lws"},
		Read:  read, NameLabels: []string{NameLabel}, OwnsPart: ownsPart, ByLabel: true, Dialect: gang.LeaderWorkerSet,
		RoleIndexOf: roleIndexOf, Labels: labels, Template: template, WriteRoles: writeRoles,
		Controller: gang.Controller{Name: "lws-controller-manager", Images: []string{"lws"}, Leases: []string{"b8b2488c.x-k8s.io"},
			Install: "kubectl apply --server-side -f https://github.com/kubernetes-sigs/lws/releases/download/v0.9.0/manifests.yaml"},
	}
}

// Written is what is read of what users write of a LeaderWorkerSet.
type Written struct {
	Spec spec `json:"spec,omitempty"`
}

type spec struct {
	// Replicas is 1 where it is absent, and so is Size.
	Replicas             *int32 `json:"replicas,omitempty"`
	LeaderWorkerTemplate struct {
		LeaderTemplate *corev1.PodTemplateSpec `json:"leaderTemplate,omitempty"`
		WorkerTemplate corev1.PodTemplateSpec  `json:"workerTemplate,omitempty"`
		Size           *int32                  `json:"size,omitempty"`
		SubGroupPolicy *struct {
			Type string `json:"subGroupPolicyType,omitempty"`
			Size *int32 `json:"subGroupSize,omitempty"`
		} `json:"subGroupPolicy,omitempty"`
	} `json:"leaderWorkerTemplate,omitempty"`
	StartupPolicy string `json:"startupPolicy,omitempty"`
}

func read(u *unstructured.Unstructured) (gang.Job, error) {
	job := gang.Job{Kind: u.GroupVersionKind(), Meta: gang.MetaOf(u), Division: gang.ByPart}
	f := &gang.Fields{Object: u}
	var s spec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.Map("spec"), &s); err != nil {
		return job, fmt.Errorf("decode spec: %w", err)
	}
	job.Seen = len(f.List("status", "conditions")) > 0
	replicas, size := ptr.Deref(s.Replicas, 1), ptr.Deref(s.LeaderWorkerTemplate.Size, 1)
	job.Problems = problems(s, replicas, size)
	if len(job.Problems) > 0 {
		replicas, size = 0, max(size, 1)
	}
	job.Roles = roles(s, withSurge(f, replicas, size), size, podAnnotations(s, size, u.GetAnnotations()))
	job.Exclusive, job.Unmodelled = exclusives(s, u.GetAnnotations())
	if size > 1 {
		var ready bool
		if job.Sequential, ready = sequential(s, u.GetAnnotations()); job.Sequential != "" {
			job.Roles[1].Follows = gang.Lead{Role: Leader, Placed: !ready}
		}
	}
	return job, f.Err
}

// problems are why the controller will not run a spec.
func problems(s spec, replicas, size int32) []string {
	var all []string
	if len(s.LeaderWorkerTemplate.WorkerTemplate.Spec.Containers) == 0 {
		all = append(all, "containers definition expected in spec.leaderWorkerTemplate.workerTemplate")
	}
	if leader := s.LeaderWorkerTemplate.LeaderTemplate; leader != nil && len(leader.Spec.Containers) == 0 {
		all = append(all, "containers definition expected in spec.leaderWorkerTemplate.leaderTemplate")
	}
	switch {
	case replicas < 0:
		all = append(all, "spec.replicas must be 0 or more")
	case size < 1:
		all = append(all, "spec.leaderWorkerTemplate.size must be 1 or more")
	case int64(replicas)*int64(size) > math.MaxInt32:
		all = append(all, fmt.Sprintf("spec: %d replicas of %d pods are more than a LeaderWorkerSet may have", replicas, size))
	}
	return all
}

// withSurge is the number of replicas with those that the controller adds while it updates them, at most as many again.
func withSurge(f *gang.Fields, replicas, size int32) int32 {
	created := int64(f.Int32("status", "replicas"))
	updating := gang.IsTrue(f.Object, "UpdateInProgress")
	most := min(2*int64(replicas), math.MaxInt32/int64(max(size, 1)))
	if updating && created > int64(replicas) {
		return int32(max(min(created, most), int64(replicas)))
	}
	return replicas
}

// Surges reports whether a replica is one that the controller adds while it updates the others, and takes away again after that.
func Surges(job *gang.Job, replica int32) bool {
	f := &gang.Fields{Object: job.Object}
	var s spec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.Map("spec"), &s); err != nil {
		return false
	}
	return gang.IsTrue(job.Object, "UpdateInProgress") && replica >= ptr.Deref(s.Replicas, 1)
}

// podAnnotations are those that the controller gives the pods of a LeaderWorkerSet with some annotations.
func podAnnotations(s spec, size int32, of map[string]string) map[string]string {
	annotations := map[string]string{SizeAnnotation: strconv.Itoa(int(size))}
	if key := of[ExclusiveAnnotation]; key != "" {
		annotations[ExclusiveAnnotation] = key
	}
	if n := s.subgroupSize(); n > 0 {
		annotations[subgroupSizeAnnotation], annotations[subgroupTypeAnnotation] = strconv.Itoa(n), s.LeaderWorkerTemplate.SubGroupPolicy.Type
		if key := of[subgroupExclusiveAnnotation]; key != "" {
			annotations[subgroupExclusiveAnnotation] = key
		}
	}
	return annotations
}

// subgroupSize is how many members each group within a replica has; 0 without such groups.
func (s spec) subgroupSize() int {
	if s.LeaderWorkerTemplate.SubGroupPolicy == nil {
		return 0
	}
	return int(max(0, ptr.Deref(s.LeaderWorkerTemplate.SubGroupPolicy.Size, 0)))
}

// exclusives are the rules of replicas that have a domain each, and of groups within them that do. A label that no node can have is not one: no pod is made with it.
func exclusives(s spec, annotations map[string]string) (rules []gang.Exclusive, unmodelled []string) {
	add := func(annotation, label, index string, by ...string) {
		key := annotations[annotation]
		if key == "" {
			return
		}
		if _, err := gang.TopologyKeys([]string{key}); err != nil {
			unmodelled = append(unmodelled, fmt.Sprintf("the topology domains of annotation %s", annotation))
			return
		}
		rules = append(rules, gang.Exclusive{Rule: gang.PartRule{By: by, Required: key, Exclusive: index}, Label: label})
	}
	add(ExclusiveAnnotation, groupKeyLabel, GroupIndexLabel, GroupIndexLabel)
	if s.subgroupSize() > 0 {
		add(subgroupExclusiveAnnotation, subgroupKeyLabel, subgroupIndexLabel, GroupIndexLabel, subgroupIndexLabel)
	}
	return rules, unmodelled
}

// subgroup is which group within its replica a member is in, as the controller counts; ok is false for one that is in none.
func subgroup(annotations map[string]string, within int) (number int, ok bool) {
	size, err := strconv.Atoi(annotations[subgroupSizeAnnotation])
	members, failed := strconv.Atoi(annotations[SizeAnnotation])
	switch {
	case err != nil || failed != nil || size < 1 || within == 0 && annotations[subgroupTypeAnnotation] == leaderExcluded:
		return 0, false
	case within > 0 && (members-1)%size == 0 && members%size != 0: // the leader is one more in the first group, or in none
		within--
	}
	return within / size, true
}

// roles are those of a number of replicas. The controller makes the leader of the workers' template if it has none of its own.
func roles(s spec, replicas, size int32, annotations map[string]string) []gang.Role {
	leader := gang.Role{Name: Leader, Replicas: replicas, PartSize: 1, Template: s.LeaderWorkerTemplate.WorkerTemplate, TemplateOf: Worker}
	if own := s.LeaderWorkerTemplate.LeaderTemplate; own != nil {
		leader.Template, leader.TemplateOf = *own, ""
	}
	worker := gang.Role{Name: Worker, Replicas: replicas * (size - 1), PartSize: size - 1, Template: s.LeaderWorkerTemplate.WorkerTemplate}
	all := []gang.Role{leader, worker}
	if size == 1 {
		all = all[:1]
	}
	for i := range all {
		role := &all[i]
		meta := role.Template.ObjectMeta.DeepCopy()
		if meta.Annotations == nil {
			meta.Annotations = map[string]string{}
		}
		for key, value := range annotations {
			meta.Annotations[key] = value
		}
		role.Template.ObjectMeta = *meta
		if c := role.Template.Spec.Containers; len(c) > 0 {
			role.Main = c[0].Name
		}
	}
	return all
}

// sequential is why not all pods of a replica are made at once, "" if they are; and whether the leader has to be ready for that.
func sequential(s spec, annotations map[string]string) (why string, ready bool) {
	if s.StartupPolicy == "LeaderReady" {
		return "the workers of a replica are made only when its leader is ready (startupPolicy: LeaderReady)", true
	}
	if _, set := annotations[ExclusiveAnnotation]; set {
		return fmt.Sprintf("the workers of a replica are made only when its leader has a node (annotation %s)", ExclusiveAnnotation), false
	}
	return "", false
}

// ownsPart reports whether a pod of a StatefulSet is one of the LeaderWorkerSet's: that of the leaders has its name, and that of the workers
// of a replica the name of their leader. No object in between carries the uid.
func ownsPart(job *metav1.ObjectMeta, pod *corev1.Pod, part *metav1.OwnerReference) bool {
	if part.Kind != "StatefulSet" || pod.Labels[NameLabel] != job.Name {
		return false
	}
	return part.Name == job.Name || part.Name == job.Name+"-"+pod.Labels[GroupIndexLabel]
}

// roleIndexOf reads the replica and the place in it. Pods of another revision may have a place that replicas have not any more: they are no
// members.
func roleIndexOf(job *gang.Job, pod *corev1.Pod) (gang.RoleIndex, bool) {
	replica, err := strconv.ParseInt(pod.Labels[GroupIndexLabel], 10, 32)
	within, failed := strconv.ParseInt(pod.Labels[WorkerIndexLabel], 10, 32)
	if err != nil || failed != nil || replica < 0 || within < 0 {
		return gang.RoleIndex{}, false
	}
	if within == 0 {
		return gang.RoleIndex{Role: Leader, Index: int(replica)}, true
	}
	place := gang.RoleIndex{Role: Worker, Index: math.MaxInt32}
	for _, role := range job.Roles {
		if size := int64(role.PartSize); role.Name == Worker && within <= size {
			place.Index = int(min(replica*size+within-1, math.MaxInt32))
		}
	}
	return place, true
}

// labels are those of a pod that constraints may select by.
func labels(job *gang.Job, p gang.RoleIndex) map[string]string {
	replica, within := p.Index, 0
	for _, role := range job.Roles {
		if size := int(role.PartSize); role.Name == Worker && p.Role == Worker && size > 0 {
			replica, within = p.Index/size, p.Index%size+1
		}
	}
	all := map[string]string{NameLabel: job.Meta.Name, GroupIndexLabel: strconv.Itoa(replica), WorkerIndexLabel: strconv.Itoa(within)}
	for _, role := range job.Roles {
		if strings.EqualFold(role.Name, p.Role) {
			if number, ok := subgroup(role.Template.Annotations, within); ok {
				all[subgroupIndexLabel] = strconv.Itoa(number)
			}
		}
	}
	return all
}

func template(role string) []string {
	return []string{"spec", "leaderWorkerTemplate", strings.ToLower(role) + "Template"}
}
