package describe

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// roles are those of a job: what each requests in the container that does the work.
func roles(job *gang.Job) []role {
	all := []role{}
	for _, r := range job.Roles {
		one := role{Name: strings.ToLower(r.Name), Replicas: r.Replicas, Restart: restart(job, r.Name, r.Template.Spec.RestartPolicy)}
		for _, c := range r.Template.Spec.Containers {
			if c.Name == r.Main {
				one.Image, one.Command, one.Requests = c.Image, redact.Args(slices.Concat(c.Command, c.Args)), requests(c.Resources)
			}
		}
		all = append(all, one)
	}
	return all
}

// restart is the restart policy of a role: operators have a policy of their own for each role, which the pods follow.
func restart(job *gang.Job, name string, pods corev1.RestartPolicy) string {
	for _, specs := range []string{"tfReplicaSpecs", "pytorchReplicaSpecs", "mpiReplicaSpecs"} {
		if policy, ok, _ := unstructured.NestedString(job.Object.Object, "spec", specs, name, "restartPolicy"); ok {
			return policy
		}
	}
	return string(pods)
}

// requests are the requests of a container; a limit without a request is one.
func requests(r corev1.ResourceRequirements) map[string]string {
	all := map[string]string{}
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for name, q := range list {
			all[string(name)] = q.String()
		}
	}
	return all
}
