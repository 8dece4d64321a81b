package kubeflow

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/workload"
)

// labelPairs are the labels for role and index, newest first: v1.4 to v1.9, v1.0.1 to v1.5, v0.5 to Kubeflow 1.2, v1alpha1.
var labelPairs = [][2]string{
	{"training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index"},
	{"replica-type", "replica-index"},
	{"tf-replica-type", "tf-replica-index"},
	{"pytorch-replica-type", "pytorch-replica-index"},
	{"job_type", "task_index"},
}

// PlaceOf reads role and index from the labels of any release.
func PlaceOf(pod *corev1.Pod) (workload.Place, bool) {
	for _, keys := range labelPairs {
		role := pod.Labels[keys[0]]
		if index, err := strconv.Atoi(pod.Labels[keys[1]]); err == nil && role != "" {
			return workload.Place{Role: strings.ToLower(role), Index: index}, true
		}
	}
	return workload.Place{}, false
}

// PodName is JOB-ROLE-INDEX, from v1alpha2 on.
func PodName(job string, p workload.Place) string {
	return fmt.Sprintf("%s-%s-%d", job, p.Role, p.Index)
}

// Operator is how the controller of these jobs is recognised, under its names old and new.
func Operator() workload.Controller {
	return workload.Controller{Name: "training-operator", Images: []string{"training-operator", "tf-operator", "tf_operator", "pytorch-operator"}}
}
