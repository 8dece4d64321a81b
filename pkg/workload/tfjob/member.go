package tfjob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/workload/demand"
)

// roleOrder is the order in which members are shown. Keys of tfReplicaSpecs are compared without case, as the operator does.
var roleOrder = []string{"chief", "master", "ps", "worker", "evaluator"}

// Member is one pod that the job has, or should have.
type Member struct {
	// Role is the replica type in lower case, as it is in the pod's name and labels.
	Role  string
	Index int
	// Pod is nil if there is none.
	Pod   *corev1.Pod
	State State
	// GPUs is what the member asks for.
	GPUs int64
	// Reason says why the member does not run; empty if it does.
	Reason string
}

// Name is ROLE-INDEX.
func (m Member) Name() string { return fmt.Sprintf("%s-%d", m.Role, m.Index) }

// Node is where the member is, or "".
func (m Member) Node() string {
	if m.Pod == nil {
		return ""
	}
	return m.Pod.Spec.NodeName
}

// PodName is the name that the operator gives a member's pod and service.
func PodName(job, role string, index int) string { return fmt.Sprintf("%s-%s-%d", job, role, index) }

// Members are the members that the spec asks for, in order of role and index, each with its pod. Pods of other owners, and
// those beyond the number of replicas, are left out.
func Members(job *kubeflowv1.TFJob, pods []*corev1.Pod) []Member {
	byName := map[string]*corev1.Pod{}
	for _, pod := range pods {
		if Owner(pod) != job.UID {
			continue
		}
		if role, index, ok := place(pod); ok {
			byName[role+"-"+index] = pod
		} else {
			byName[strings.TrimPrefix(pod.Name, job.Name+"-")] = pod
		}
	}
	var members []Member
	for _, role := range sortedRoles(job) {
		spec := job.Spec.TFReplicaSpecs[role]
		gpus := demand.GPUs(demand.Of(spec.Template.Spec))
		for i := range replicas(spec) {
			m := Member{Role: strings.ToLower(string(role)), Index: i, GPUs: gpus}
			m.Pod = byName[m.Name()]
			m.State, m.Reason = memberState(m.Pod)
			members = append(members, m)
		}
	}
	return members
}

// place reads role and index from the operator's labels: prefixed since v1.4, bare before.
func place(pod *corev1.Pod) (role, index string, ok bool) {
	for _, prefix := range []string{"training.kubeflow.org/", ""} {
		role, index = pod.Labels[prefix+"replica-type"], pod.Labels[prefix+"replica-index"]
		if _, err := strconv.Atoi(index); err == nil && role != "" {
			return strings.ToLower(role), index, true
		}
	}
	return "", "", false
}

func replicas(spec *kubeflowv1.ReplicaSpec) int {
	if spec.Replicas == nil {
		return 1 // the operator's default, which it does not write to the object
	}
	return int(*spec.Replicas)
}

func sortedRoles(job *kubeflowv1.TFJob) []kubeflowv1.ReplicaType {
	var roles []kubeflowv1.ReplicaType
	for role, spec := range job.Spec.TFReplicaSpecs {
		if spec != nil {
			roles = append(roles, role)
		}
	}
	rank := func(r kubeflowv1.ReplicaType) int {
		if i := slices.Index(roleOrder, strings.ToLower(string(r))); i >= 0 {
			return i
		}
		return len(roleOrder)
	}
	slices.SortFunc(roles, func(a, b kubeflowv1.ReplicaType) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(string(a), string(b))
	})
	return roles
}
