// Package kueue reads what Kueue writes: its plain pod groups, and the queue label and scheduling gate by which it suspends a job. Kueue
// admits by quota and places nothing, so a gang may be Kueue's and a scheduler's at the same time.
package kueue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	// Group is the API group of Workloads and queues.
	Group = "kueue.x-k8s.io"
	// QueueLabel names the LocalQueue of a job or pod.
	QueueLabel = "kueue.x-k8s.io/queue-name"
	// Gate is the scheduling gate under which Kueue holds a pod.
	Gate = "kueue.x-k8s.io/admission"
	// TopologyGate is the one under which it holds a pod that it has admitted, until it has chosen its place.
	TopologyGate = "kueue.x-k8s.io/topology"
	// RequiredTopology is the annotation of pods by which those of a role must share a domain.
	RequiredTopology = "kueue.x-k8s.io/podset-required-topology"
	// PreferredTopology is the one by which they should.
	PreferredTopology = "kueue.x-k8s.io/podset-preferred-topology"

	// IndexAnnotation is on a Workload of one replica of many: its index.
	IndexAnnotation = "kueue.x-k8s.io/component-workload-index"

	// JobUIDLabel is on the Workload that Kueue has made for a job: the uid of that. OriginLabel is on one that MultiKueue has made for a job of another cluster.
	JobUIDLabel = "kueue.x-k8s.io/job-uid"
	OriginLabel = "kueue.x-k8s.io/multikueue-origin"

	// ReplacesAnnotation is on the Workload of an elastic job that has grown: NAMESPACE/NAME of the one that it replaces once it is admitted.
	ReplacesAnnotation = "kueue.x-k8s.io/workload-slice-replacement-for"

	// PriorityLabel names the WorkloadPriorityClass of a job.
	PriorityLabel = "kueue.x-k8s.io/priority-class"
	// Provisioning is the controller of admission checks that has nodes provisioned, and MultiKueue the one that has jobs run in another cluster.
	Provisioning = "kueue.x-k8s.io/provisioning-request"
	MultiKueue   = "kueue.x-k8s.io/multikueue"

	// PodSetLabel and WorkloadAnnotation are on the pods of what Kueue has admitted: it finds those whose gate it lifts by them.
	PodSetLabel        = "kueue.x-k8s.io/podset"
	WorkloadAnnotation = "kueue.x-k8s.io/workload"
	// AdmissionGatedBy is the annotation of a job, and of its Workload, by which others keep Kueue from admitting it: their names.
	AdmissionGatedBy = "kueue.x-k8s.io/admission-gated-by"

	// parentAnnotation is what Kueue writes into the pod templates of a job that cannot be suspended: the kind of it. It holds their pods instead, each
	// under its gate.
	parentAnnotation = "kueue.x-k8s.io/pod-suspending-parent"

	// podSetGroup is the annotation of pods whose pod sets share one domain.
	podSetGroup = "kueue.x-k8s.io/podset-group-name"

	groupLabel      = "kueue.x-k8s.io/pod-group-name"
	workloadLabel   = "kueue.x-k8s.io/prebuilt-workload-name"
	countAnnotation = "kueue.x-k8s.io/pod-group-total-count"
)

// Kind returns one of Kueue's kinds, such as Workload.
func Kind(name string) schema.GroupKind { return schema.GroupKind{Group: Group, Kind: name} }

// QueueOf returns the LocalQueue in which an object waits; ok is false for one that Kueue does not manage.
func QueueOf(obj metav1.Object) (string, bool) {
	name := obj.GetLabels()[QueueLabel]
	return name, name != ""
}

// WorkloadNamed is the Workload that a pod names as its own; empty for one that names none.
func WorkloadNamed(pod metav1.Object) string {
	return cmp.Or(pod.GetLabels()[workloadLabel], pod.GetLabels()[groupLabel])
}

// RequestKind is the kind of the requests for nodes by which the controller [Provisioning] checks what a Workload needs.
func RequestKind() schema.GroupKind {
	return schema.GroupKind{Group: "autoscaling.x-k8s.io", Kind: "ProvisioningRequest"}
}

// StopPolicy is the policy by which a queue is stopped; empty for one that is open.
func StopPolicy(queue *unstructured.Unstructured) string {
	f := gang.Fields{Object: queue}
	return strings.TrimPrefix(f.String("spec", "stopPolicy"), "None")
}

// Holds reports whether Kueue holds a job that it manages: the job is suspended, or each of its pods will be gated.
func Holds(job *gang.Job) bool {
	free := func(r gang.Role) bool { return r.Template.Annotations[parentAnnotation] == "" }
	return job.Suspended || len(job.Roles) > 0 && !slices.ContainsFunc(job.Roles, free)
}

// TopologyOf returns by which node labels the pods of a role share a domain. Kueue chooses the domain when it admits the job, and writes it into the
// node selectors of its pods: so this is about jobs that are not admitted.
func TopologyOf(pod metav1.Object) (gang.Topology, error) {
	notes := pod.GetAnnotations()
	own := map[string]string{gang.TopologyRequired: notes[RequiredTopology], gang.TopologyPreferred: notes[PreferredTopology]}
	t, err := gang.TopologyOf(own)
	if err != nil {
		return t, fmt.Errorf("%s or %s: %w", RequiredTopology, PreferredTopology, err)
	}
	return t, nil
}

// TopologyOfRoles are the rules by which the pods of each of several roles share a domain of their own: Kueue has a pod set of each. Those that it has in one group
// of pod sets share it. The rules select by a label that [InPodSet] writes.
func TopologyOfRoles(roles []gang.Role) gang.Topology {
	var t gang.Topology
	for i := range roles {
		own, err := TopologyOf(&roles[i].Template)
		rule := gang.PartRule{Selector: PodSetLabel + "=" + podSet(roles[i].Name, &roles[i].Template), Required: own.Required}
		if err == nil && own.Required != "" && !slices.ContainsFunc(t.Parts, func(r gang.PartRule) bool { return r.Selector == rule.Selector && r.Required == rule.Required }) {
			t.Parts = append(t.Parts, rule)
		}
	}
	if t.Validate() != nil {
		return gang.Topology{} // more than are evaluated
	}
	return t
}

// InPodSet is a pod of a role with the label of its pod set, which Kueue writes when it admits the job.
func InPodSet(role string, pod *corev1.Pod) *corev1.Pod {
	labelled := *pod
	labelled.Labels = maps.Clone(pod.Labels)
	metav1.SetMetaDataLabel(&labelled.ObjectMeta, PodSetLabel, podSet(role, pod))
	return &labelled
}

// podSet is the pod set of a role, or the group that it is in.
func podSet(role string, pod metav1.Object) string {
	return cmp.Or(pod.GetAnnotations()[podSetGroup], strings.ToLower(role))
}

// Reader reads plain pod groups.
func Reader() gang.Reader {
	return gang.Reader{
		Dialect: gang.Kueue,
		NameOf: func(pod metav1.Object) (string, bool) {
			name := pod.GetLabels()[groupLabel]
			return name, name != ""
		},
		FromPods: func(key gang.Key, pods []*corev1.Pod) (gang.Declaration, error) {
			d := gang.Declaration{Key: key, MinMember: 1}
			for _, pod := range pods {
				count := pod.Annotations[countAnnotation]
				n, err := strconv.ParseInt(count, 10, 32)
				if err != nil || n < 1 {
					return d, fmt.Errorf("pod %s/%s: annotation %s=%q is not a whole number from 1 on", pod.Namespace, pod.Name, countAnnotation, count)
				}
				d.MinMember = max(d.MinMember, int32(n))
				d.Queue, _ = QueueOf(pod)
			}
			return d, nil
		},
		SetMinimum: func(template *metav1.ObjectMeta, minimum int32, _, _ []gang.Role) {
			gang.Restate(template.Annotations, minimum, countAnnotation)
		},
	}
}
