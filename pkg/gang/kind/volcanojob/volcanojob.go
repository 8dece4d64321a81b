// Package volcanojob reads Volcano's own Jobs (batch.volcano.sh) as far as one needs that has no pods yet: the pods that it has name their gang themselves.
package volcanojob

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// Group is the API group.
const Group = "batch.volcano.sh"

// GroupKind is the kind.
func GroupKind() schema.GroupKind { return schema.GroupKind{Group: Group, Kind: "Job"} }

// Reader reads this kind. It is not among those of package kind: such Jobs are known by their PodGroups.
func Reader() gang.JobReader {
	return gang.JobReader{
		GroupKind: GroupKind(), Resource: "jobs", Versions: []string{"v1alpha1"}, Names: []string{"job"}, Read: read, NameLabels: []string{"volcano.sh/job-name"},
		Template: func(role string) []string { return []string{"spec", "tasks", role, "template"} }, WriteRoles: writeRoles,
	}
}

// task is a role.
type task struct {
	Name     string                 `json:"name,omitempty"`
	Replicas *int32                 `json:"replicas,omitempty"`
	Template corev1.PodTemplateSpec `json:"template,omitempty"`
}

func read(u *unstructured.Unstructured) (gang.Job, error) {
	job := gang.Job{Kind: u.GroupVersionKind(), Meta: gang.MetaOf(u), Unsuspendable: true}
	f := &gang.Fields{Object: u}
	var spec struct {
		Tasks         []task `json:"tasks,omitempty"`
		MinAvailable  int32  `json:"minAvailable,omitempty"`
		SchedulerName string `json:"schedulerName,omitempty"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.Map("spec"), &spec); err != nil {
		return job, fmt.Errorf("decode spec: %w", err)
	}
	for i, t := range spec.Tasks {
		role := gang.Role{Name: cmp.Or(t.Name, fmt.Sprintf("default%d", i)), Replicas: max(0, ptr.Deref(t.Replicas, 1)), Template: t.Template}
		role.Template.Spec.SchedulerName = cmp.Or(role.Template.Spec.SchedulerName, spec.SchedulerName, volcano.SchedulerName)
		if len(t.Template.Spec.Containers) > 0 {
			role.Main = t.Template.Spec.Containers[0].Name
		}
		job.Roles = append(job.Roles, role)
	}
	if len(job.Roles) == 0 {
		job.Problems = append(job.Problems, "spec.tasks is empty")
	}
	if spec.MinAvailable > 0 {
		job.MinMember = &spec.MinAvailable
	}
	job.Queue, job.PriorityClass = cmp.Or(f.String("spec", "queue"), volcano.DefaultQueue), f.String("spec", "priorityClassName")
	readStatus(&job, f)
	return job, f.Err
}

// readStatus reads how the Job is, by its own account.
func readStatus(job *gang.Job, f *gang.Fields) {
	phase, reason, message := f.String("status", "state", "phase"), f.String("status", "state", "reason"), f.String("status", "state", "message")
	at, err := time.Parse(time.RFC3339, f.String("status", "state", "lastTransitionTime"))
	if err != nil {
		at = time.Time{}
	}
	job.Seen = phase != ""
	switch phase {
	case "Completed", "Failed", "Terminated":
		job.End = &gang.End{Failed: phase != "Completed", Reason: cmp.Or(reason, phase), Message: message, At: at}
	case "Aborting", "Aborted":
		job.Suspended = true
	}
}

// Reported is what the controller writes of a Job that has not ended: its phase, with the reason; empty if it has written nothing.
func Reported(u *unstructured.Unstructured) string {
	f := gang.Fields{Object: u}
	text := f.String("status", "state", "phase")
	for _, part := range []string{f.String("status", "state", "reason"), f.String("status", "state", "message")} {
		if part != "" {
			text += ": " + part
		}
	}
	return text
}

// writeRoles writes the number and the template of tasks.
func writeRoles(u *unstructured.Unstructured, roles []gang.Role) {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "tasks")
	items, _ := list.([]any)
	for i, each := range items {
		item, ok := each.(map[string]any)
		if !ok {
			continue
		}
		name, _ := item["name"].(string)
		at := slices.IndexFunc(roles, func(r gang.Role) bool { return r.Name == cmp.Or(name, fmt.Sprintf("default%d", i)) })
		if at < 0 {
			continue
		}
		item["replicas"] = int64(roles[at].Replicas)
		if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&roles[at].Template); err == nil {
			item["template"] = content
		}
	}
}
