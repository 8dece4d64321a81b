// Package volcanojob reads Volcano's own Jobs (batch.volcano.sh). Their controller makes a PodGroup of each, and pods when a queue has admitted that.
package volcanojob

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// Group is the API group.
const Group = "batch.volcano.sh"

// Labels of pods, of which the first is in every release.
const (
	nameLabel  = "volcano.sh/job-name"
	indexLabel = "volcano.sh/task-index"
)

// GroupKind is the kind.
func GroupKind() schema.GroupKind { return schema.GroupKind{Group: Group, Kind: "Job"} }

// Reader reads this kind.
func Reader() gang.JobReader {
	return gang.JobReader{
		GroupKind: GroupKind(), Resource: "jobs", Versions: []string{"v1alpha1"}, Called: "Volcano Job",
		Names: []string{"vcjob", "vcjobs", "vj", "jobs." + Group, "job." + Group}, // batch Jobs are called job, too
		Read:  read, NameLabels: []string{nameLabel}, RoleIndexOf: roleIndexOf, Labels: labels, PodName: podName,
		Template: func(role string) []string { return []string{"spec", "tasks", role, "template"} }, WriteRoles: writeRoles,
		GangScheduler: volcano.SchedulerName, Unmanaged: true,
		Controller: gang.Controller{Name: "vc-controller-manager", Images: []string{"vc-controller-manager"},
			Install: "kubectl apply -f https://raw.githubusercontent.com/volcano-sh/volcano/master/installer/volcano-development.yaml"},
	}
}

// podName is JOB-TASK-INDEX.
func podName(job string, p gang.RoleIndex) string {
	return fmt.Sprintf("%s-%s-%d", job, p.Role, p.Index)
}

// roleIndexOf reads the task of a pod, and its index, which is in the name of every pod and in a label of newer releases only.
func roleIndexOf(job *gang.Job, pod *corev1.Pod) (gang.RoleIndex, bool) {
	p := gang.RoleIndex{Role: volcano.RoleOf(pod)}
	number, labelled := pod.Labels[indexLabel]
	if !labelled {
		number = pod.Name[strings.LastIndexByte(pod.Name, '-')+1:]
	}
	index, err := strconv.Atoi(number)
	p.Index = index
	return p, err == nil && p.Role != "" && (labelled || podName(job.Meta.Name, p) == pod.Name)
}

func labels(job *gang.Job, p gang.RoleIndex) map[string]string {
	return map[string]string{nameLabel: job.Meta.Name, "volcano.sh/job-namespace": job.Meta.Namespace, "volcano.sh/task-spec": p.Role, indexLabel: strconv.Itoa(p.Index), "volcano.sh/queue-name": job.Queue}
}

// task is a role.
type task struct {
	Name      string                 `json:"name,omitempty"`
	Replicas  *int32                 `json:"replicas,omitempty"`
	Template  corev1.PodTemplateSpec `json:"template,omitempty"`
	DependsOn *struct {
		Name      []string `json:"name,omitempty"`
		Iteration string   `json:"iteration,omitempty"`
	} `json:"dependsOn,omitempty"`
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
		follow(&job, &role, t)
		job.Roles = append(job.Roles, role)
	}
	claims := Claims(u)
	for i := range job.Roles {
		mount(&job.Roles[i].Template.Spec, claims)
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

// maxClaims is how many of the claims that a Job names count: each is in the pods of each task.
const maxClaims = 16

// mount gives a pod claims, as the controller does with those that the Job names.
func mount(spec *corev1.PodSpec, claims []string) {
	volumes := spec.Volumes
	spec.Volumes = slices.Clip(volumes) // the template is shared
	for _, claim := range claims {
		if !slices.ContainsFunc(volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		}) {
			spec.Volumes = append(spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
		}
	}
}

// Claims are the names of the claims that a Job names, of which its controller makes none, and without which it makes nothing of the Job.
func Claims(u *unstructured.Unstructured) (names []string) {
	f := gang.Fields{Object: u}
	for _, item := range f.List("spec", "volumes") {
		name, _ := item["volumeClaimName"].(string)
		if name != "" && item["volumeClaim"] == nil && len(names) < maxClaims && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

const (
	// maxTasks is how many tasks that another depends on are named.
	maxTasks = 4
	// maxLeads is how many of them count: each is looked at for each member of the role.
	maxLeads = 64
)

// follow has a role come after the tasks that it depends on: after all, or any of them.
func follow(job *gang.Job, role *gang.Role, t task) {
	if t.DependsOn == nil || len(t.DependsOn.Name) == 0 {
		return
	}
	tasks, joined := t.DependsOn.Name, " and "
	leads := tasks[:min(len(tasks), maxLeads)]
	role.Follows = gang.Lead{Role: leads[0], Also: leads[1:], Any: t.DependsOn.Iteration == "any"}
	if more := len(tasks) - len(leads); more > 0 && len(job.Unmodelled) == 0 {
		job.Unmodelled = []string{fmt.Sprintf("that task %.63s depends on %d others, too", role.Name, more)}
	}
	if role.Follows.Any {
		joined = " or "
	}
	var names []string
	for _, name := range tasks[:min(len(tasks), maxTasks)] {
		names = append(names, fmt.Sprintf("%.63s", name))
	}
	if more := len(tasks) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	job.Sequential = cmp.Or(job.Sequential, fmt.Sprintf("the pods of task %.63s are made only when those of %s run (dependsOn)", role.Name, strings.Join(names, joined)))
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

// Command is the command of Volcano that suspends or resumes a Job.
func Command(verb string, job *metav1.ObjectMeta) string {
	return shell.Join("vcctl", "job", verb, "--namespace", job.Namespace, "--name", job.Name)
}

// Tasks are the tasks of a Job as it has them, nil for one that is none.
func Tasks(u *unstructured.Unstructured) (tasks []map[string]any) {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "tasks")
	items, _ := list.([]any)
	for _, each := range items {
		item, _ := each.(map[string]any)
		tasks = append(tasks, item)
	}
	return tasks
}

// TaskAt is the position of the task that a role is; -1 if there is none.
func TaskAt(u *unstructured.Unstructured, role string) int {
	for i, item := range Tasks(u) {
		if name, _ := item["name"].(string); item != nil && cmp.Or(name, fmt.Sprintf("default%d", i)) == role {
			return i
		}
	}
	return -1
}

// writeRoles writes the number and the template of tasks.
func writeRoles(u *unstructured.Unstructured, roles []gang.Role) {
	tasks := Tasks(u)
	for _, role := range roles {
		at := TaskAt(u, role.Name)
		if at < 0 {
			continue
		}
		tasks[at]["replicas"] = int64(role.Replicas)
		if content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&role.Template); err == nil {
			tasks[at]["template"] = content
		}
	}
}
