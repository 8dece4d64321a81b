// Package kubeflow reads what the jobs of the Kubeflow Training Operator share in all of their history: replica specs by
// role, the run policy (in runPolicy, or at the top level of spec before v1.1), conditions, and the labels on pods.
package kubeflow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Layout is how one kind differs from its sisters.
type Layout struct {
	// Specs is the field of spec that maps roles to replica specs.
	Specs string
	// Container is the container that every replica must have; empty if any will do.
	Container string
	// Roles are those that the operator knows, in the order in which they are shown. It compares them without case.
	Roles []string
	// Endless is the role whose pods do not end by themselves, in lower case; empty if all do.
	Endless string
}

// Template is the path of the pod template of a role.
func (l Layout) Template(role string) []string { return []string{"spec", l.Specs, role, "template"} }

// Policy is the path of the scheduling policy.
func Policy() []string { return []string{"spec", "runPolicy", "schedulingPolicy"} }

// Read reads a job of the layout. Errors name the object and the field.
func Read(u *unstructured.Unstructured, layout Layout) (gang.Job, error) {
	job := gang.Job{Kind: u.GroupVersionKind(), Meta: gang.MetaOf(u)}
	f := &gang.Fields{Object: u}
	if err := readRoles(&job, f, layout); err != nil {
		return job, err
	}
	policy := []string{"spec", "runPolicy"}
	if f.Map(policy...) == nil {
		policy = policy[:1]
	}
	at := func(field ...string) []string { return append(slices.Clone(policy), field...) }
	job.Suspended, job.Unsuspendable = f.Bool(at("suspend")...), beforeSuspend(u)
	job.Deadline = f.Seconds(at("activeDeadlineSeconds")...)
	readCleaning(&job, f, layout, at)
	if _, ok, _ := unstructured.NestedFieldNoCopy(u.Object, at("schedulingPolicy", "minAvailable")...); ok {
		n := f.Int32(at("schedulingPolicy", "minAvailable")...)
		job.MinMember = &n
	}
	job.Queue = f.String(at("schedulingPolicy", "queue")...)
	job.PriorityClass = f.String(at("schedulingPolicy", "priorityClass")...)
	if t, err := time.Parse(time.RFC3339, f.String("status", "startTime")); err == nil {
		job.Started = t
	}
	readStatus(&job, f)
	return job, f.Err
}

// readCleaning reads whether pods of the endless role stay when the job ends. The operators of today leave them unless the job states otherwise, those of the first versions
// did not. The Training Operator deletes a job with a time to live, with all pods; the MPI Operator hands that to the Job of the launcher alone.
func readCleaning(job *gang.Job, f *gang.Fields, layout Layout, at func(...string) []string) {
	version, ttl := job.Kind.Version, at("ttlSecondsAfterFinished")
	byDefault := "Running"
	if version == "v1" || version == "v2beta1" {
		byDefault = "None"
	}
	policy := cmp.Or(f.String(at("cleanPodPolicy")...), f.String("spec", "cleanPodPolicy"), byDefault)
	i := slices.IndexFunc(job.Roles, func(r gang.Role) bool { return strings.EqualFold(r.Name, layout.Endless) })
	if policy != "None" || i < 0 {
		return
	}
	if value, _, _ := unstructured.NestedFieldNoCopy(f.Object.Object, ttl...); value != nil && version != "v2beta1" {
		if job.LeftFor = f.Seconds(ttl...); job.LeftFor <= 0 { // it is deleted at once
			return
		}
	}
	job.Roles[i].Stays = true
}

// beforeSuspend reports whether a job is kept by an operator that does not know suspend: Training Operator 1.7 and the MPI
// Operator of v2beta1 do, and their API fills it in wherever there is a run policy.
func beforeSuspend(u *unstructured.Unstructured) bool {
	if version := u.GroupVersionKind().Version; version != "v1" && version != "v2beta1" {
		return true
	}
	policy, _, _ := unstructured.NestedMap(u.Object, "spec", "runPolicy")
	if policy == nil {
		_, early, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "cleanPodPolicy") // v1 before there was a run policy
		return early
	}
	_, there := policy["suspend"]
	return !there
}

func readStatus(job *gang.Job, f *gang.Fields) {
	job.Seen = len(f.List("status", "conditions")) > 0 || f.String("status", "startTime") != ""
	statuses, _, _ := unstructured.NestedMap(f.Object.Object, "status", "replicaStatuses")
	for role := range statuses {
		active, _, _ := unstructured.NestedInt64(statuses, role, "active")
		job.ReportedUp = gang.Sum(job.ReportedUp, int32(min(active, math.MaxInt32)))
	}
	for _, c := range f.List("status", "conditions") {
		kind, _ := c["type"].(string)
		if c["status"] != "True" || kind != "Failed" && kind != "Succeeded" {
			continue
		}
		w := gang.ConditionOf(c)
		job.End = &gang.End{Failed: kind == "Failed", Reason: w.Reason, Message: w.Message, At: w.At}
		if job.End.Failed && strings.Contains(w.Reason, "Invalid") {
			job.Problems = append(job.Problems, w.Message)
		}
	}
}

// readRoles reads the map of roles, or the list of v1alpha1.
func readRoles(job *gang.Job, f *gang.Fields, layout Layout) error {
	specs := f.Map("spec", layout.Specs)
	if specs == nil {
		specs = map[string]any{}
		for _, item := range f.List("spec", "replicaSpecs") {
			role, _ := item["tfReplicaType"].(string)
			specs[cmp.Or(camel(role), "Master")] = item
		}
	}
	for name, value := range specs {
		spec, ok := value.(map[string]any)
		if !ok {
			continue
		}
		role, err := readRole(name, spec)
		if err != nil {
			return fmt.Errorf("decode %s %s: %s.%s: %w", job.Kind.Kind, job.Name(), layout.Specs, name, err)
		}
		role.Main = mainContainer(role, layout.Container)
		job.Problems = append(job.Problems, problems(role, layout.Container)...)
		job.Roles = append(job.Roles, role)
	}
	rank := func(r gang.Role) int {
		if i := slices.IndexFunc(layout.Roles, func(name string) bool { return strings.EqualFold(name, r.Name) }); i >= 0 {
			return i
		}
		return len(layout.Roles)
	}
	slices.SortFunc(job.Roles, func(a, b gang.Role) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a.Name, b.Name)) })
	slices.Sort(job.Problems)
	if len(job.Roles) == 0 {
		job.Problems = append(job.Problems, "spec."+layout.Specs+" is empty")
	}
	return nil
}

func readRole(name string, spec map[string]any) (gang.Role, error) {
	var typed struct {
		// Replicas is 1 where it is absent: a default that the operator keeps in memory.
		Replicas *int32                 `json:"replicas,omitempty"`
		Template corev1.PodTemplateSpec `json:"template,omitempty"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &typed); err != nil {
		return gang.Role{}, err
	}
	role := gang.Role{Name: name, Replicas: 1, Template: typed.Template}
	if typed.Replicas != nil {
		role.Replicas = *typed.Replicas
	}
	return role, nil
}

func mainContainer(role gang.Role, want string) string {
	containers := role.Template.Spec.Containers
	for _, c := range containers {
		if c.Name == want {
			return want
		}
	}
	if len(containers) > 0 {
		return containers[0].Name
	}
	return want
}

// problems are the rules that the operator checks, with its own messages where it has some.
func problems(role gang.Role, container string) []string {
	containers := role.Template.Spec.Containers
	if len(containers) == 0 {
		return []string{"containers definition expected in " + role.Name}
	}
	if container == "" || slices.ContainsFunc(containers, func(c corev1.Container) bool { return c.Name == container }) {
		return nil
	}
	return []string{fmt.Sprintf("there is no container named %s in %s (it has %s)", container, role.Name, containers[0].Name)}
}

// camel turns MASTER into Master.
func camel(s string) string {
	if s == "" || strings.EqualFold(s, "ps") {
		return strings.ToUpper(s)
	}
	return strings.ToUpper(s[:1]) + strings.ToLower(s[1:])
}
