package kubeflow

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// labelPairs are the labels for role and index, newest first: v1.4 to v1.9, v1.0.1 to v1.5, v0.5 to Kubeflow 1.2, v1alpha1.
var labelPairs = [][2]string{
	{"training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"},
	{"replica-type", "replica-index"},
	{"tf-replica-type", "tf-replica-index"},
	{"pytorch-replica-type", "pytorch-replica-index"},
	{"job_type", "task_index"},
}

// RoleIndexOf reads role and index from the labels of any release. Where a pod lacks the label with its index, the index is that of its name.
func RoleIndexOf(_ *gang.Job, pod *corev1.Pod) (gang.RoleIndex, bool) {
	for _, keys := range labelPairs {
		role := pod.Labels[keys[0]]
		number, labelled := pod.Labels[keys[1]]
		if !labelled {
			number = named(pod.Name, role)
		}
		if index, err := strconv.Atoi(number); err == nil && role != "" {
			return gang.RoleIndex{Role: strings.ToLower(role), Index: index}, true
		}
	}
	return gang.RoleIndex{}, false
}

// nameLabel names the job of a pod of the Training Operator since 1.4.
const nameLabel = "training.kubeflow.org/job-name"

// NameLabels name the job of a pod, newest first: those of the Training Operator since 1.4, and of its releases before that, and then those of
// the operators of one kind that came before it.
func NameLabels(before ...string) []string {
	return append([]string{nameLabel, "job-name"}, before...)
}

// Labels are those of a member's pod since 1.4.
func Labels(job *gang.Job, p gang.RoleIndex) map[string]string {
	return map[string]string{
		nameLabel: job.Meta.Name, labelPairs[0][0]: p.Role, labelPairs[0][1]: strconv.Itoa(p.Index),
		"training.kubeflow.org/operator-name": strings.ToLower(job.Kind.Kind) + "-controller",
	}
}

// indexDigits is how long an index is at most that is read from a name: a random suffix, which may be of digits only, is longer.
const indexDigits = 4

// named is the index in a name of the form JOB-ROLE-INDEX; "" in any other.
func named(name, role string) string {
	at := strings.LastIndexByte(name, '-')
	if at < 0 || len(name)-at-1 > indexDigits || role == "" || !strings.HasSuffix(name[:at], "-"+strings.ToLower(role)) {
		return ""
	}
	return name[at+1:]
}

// PodName is JOB-ROLE-INDEX, from v1alpha2 on.
func PodName(job string, p gang.RoleIndex) string {
	return fmt.Sprintf("%s-%s-%d", job, p.Role, p.Index)
}

// ControllerName is who manages a job that names no other controller.
const ControllerName = "kubeflow.org/training-operator"

// Operator is how the controller of these jobs is recognised, under its names old and new.
func Operator() gang.Controller {
	return gang.Controller{Name: "training-operator", Images: []string{"training-operator", "tf-operator", "tf_operator", "pytorch-operator"},
		ManagedAs: []string{ControllerName}}
}
