// Package trainjob reads TrainJobs (trainer.kubeflow.org) of Kubeflow Trainer v2: jobs whose controller makes a JobSet of them and of a
// runtime. Their members are those of that JobSet.
package trainjob

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
)

const (
	// Group is the API group, and Version the only version of it that is served.
	Group   = "trainer.kubeflow.org"
	Version = "v1alpha1"
	// Kind is what a TrainJob is called, and Resource the plural under which it is served.
	Kind, Resource = "TrainJob", "trainjobs"
	// ControllerName is who manages a TrainJob that names no other controller.
	ControllerName = "trainer.kubeflow.org/trainjob-controller"
)

// node is the replicated job, and the container in it, that does the work of a runtime.
const node = "node"

// Reader reads this kind.
func Reader() gang.JobReader {
	sets := jobset.Reader()
	return gang.JobReader{
		GroupKind: schema.GroupKind{Group: Group, Kind: Kind}, Resource: Resource, Versions: []string{Version},
		Names: []string{"trainjob", "trainjobs", "train"},
		Read:  read, Makes: sets.GroupKind, Join: join, NameLabels: sets.NameLabels, OwnsPart: ownsPart, RoleIndexOf: sets.RoleIndexOf, Labels: sets.Labels, LongestName: sets.LongestName,
		Template:   func(role string) []string { return []string{"spec", "runtimePatches", role} },
		WriteRoles: writeRoles,
		Controller: gang.Controller{Name: "trainer-controller-manager", Images: []string{"trainer-controller-manager"}, Leases: []string{Group},
			Install: "kubectl apply --server-side -k 'https://github.com/kubeflow/trainer.git/manifests/overlays/manager?ref=v2.3.0'", ManagedAs: []string{ControllerName}},
	}
}

// Written is what is read of what users write of a TrainJob.
type Written struct {
	Spec spec `json:"spec,omitempty"`
}

type spec struct {
	RuntimeRef     runtimeRef `json:"runtimeRef,omitempty"`
	Trainer        *trainer   `json:"trainer,omitempty"`
	RuntimePatches []struct {
		Manager string `json:"manager,omitempty"`
	} `json:"runtimePatches,omitempty"`
	Suspend               bool   `json:"suspend,omitempty"`
	ActiveDeadlineSeconds int64  `json:"activeDeadlineSeconds,omitempty"`
	ManagedBy             string `json:"managedBy,omitempty"`
}

type runtimeRef struct {
	Name     string `json:"name,omitempty"`
	APIGroup string `json:"apiGroup,omitempty"`
	Kind     string `json:"kind,omitempty"`
}

// trainer is what a TrainJob changes of the replicated job that trains.
type trainer struct {
	Image            string                       `json:"image,omitempty"`
	Command          []string                     `json:"command,omitempty"`
	Args             []string                     `json:"args,omitempty"`
	Env              []corev1.EnvVar              `json:"env,omitempty"`
	NumNodes         *int32                       `json:"numNodes,omitempty"`
	ResourcesPerNode *corev1.ResourceRequirements `json:"resourcesPerNode,omitempty"`
}

func specOf(u *unstructured.Unstructured) (spec, error) {
	f := &gang.Fields{Object: u}
	var s spec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(f.Map("spec"), &s); err != nil {
		return s, fmt.Errorf("decode spec: %w", err)
	}
	return s, f.Err
}

// read reads what a TrainJob has itself. Its number of nodes and what they request may be the runtime's: until the JobSet is there, they
// are those of one node of the runtime's image.
func read(u *unstructured.Unstructured) (gang.Job, error) {
	job := gang.Job{Kind: u.GroupVersionKind(), Meta: gang.MetaOf(u), MadeAs: u.GetName()}
	s, err := specOf(u)
	if err != nil {
		return job, err
	}
	job.Suspended, job.Deadline = s.Suspend, gang.Seconds(s.ActiveDeadlineSeconds)
	if s.RuntimeRef.Name == "" {
		job.Problems = append(job.Problems, "spec.runtimeRef has no name")
	}
	role := s.Trainer.role()
	if role.Replicas < 0 {
		job.Problems = append(job.Problems, fmt.Sprintf("spec.trainer.numNodes is %d: must be 1 or more", role.Replicas))
	}
	job.Roles = []gang.Role{role}
	f := &gang.Fields{Object: u}
	readStatus(&job, f)
	return job, f.Err
}

// role is the members as far as a TrainJob has them itself.
func (t *trainer) role() gang.Role {
	role := gang.Role{Name: node, Replicas: 1, Main: node, PartSize: 1}
	c := corev1.Container{Name: node}
	if t != nil {
		c.Image, c.Command, c.Args, c.Env = t.Image, t.Command, t.Args, t.Env
		if t.NumNodes != nil {
			role.Replicas = *t.NumNodes
		}
		if t.ResourcesPerNode != nil {
			c.Resources = *t.ResourcesPerNode
		}
	}
	role.PartSize = max(role.Replicas, 0)
	role.Template.Spec.Containers = []corev1.Container{c}
	return role
}

func readStatus(job *gang.Job, f *gang.Fields) {
	conditions := f.List("status", "conditions")
	job.Seen = len(conditions) > 0 || len(f.List("status", "jobsStatus")) > 0
	job.Started = job.Meta.CreationTimestamp.Time // from when its deadline counts, unless it was resumed
	for _, c := range conditions {
		kind, _ := c["type"].(string)
		w := gang.ConditionOf(c)
		switch {
		case c["status"] == "True" && (kind == "Complete" || kind == "Failed"):
			job.End = &gang.End{Failed: kind == "Failed", Reason: w.Reason, Message: w.Message, At: w.At}
		case c["status"] == "False" && kind == "Suspended" && !w.At.IsZero():
			job.Started = w.At
		}
	}
	if job.Suspended {
		job.Started = time.Time{}
	}
	job.Progress = progress(f)
}

// progress is what the program reports of itself; nil if it reports nothing.
func progress(f *gang.Fields) *gang.Progress {
	reported := f.Map("status", "trainerStatus")
	if reported == nil {
		return nil
	}
	p := &gang.Progress{}
	if reported["progressPercentage"] != nil {
		percent := min(max(f.Int32("status", "trainerStatus", "progressPercentage"), 0), 100)
		p.Percent = &percent
	}
	at, err := time.Parse(time.RFC3339, f.String("status", "trainerStatus", "lastUpdatedTime"))
	if reported["estimatedRemainingSeconds"] != nil && err == nil {
		p.End = at.Add(max(f.Seconds("status", "trainerStatus", "estimatedRemainingSeconds"), 0))
	}
	return p
}

// ownsPart reports whether a pod of a Job is one of the JobSet of a TrainJob that is not known.
func ownsPart(job *metav1.ObjectMeta, pod *corev1.Pod, part *metav1.OwnerReference) bool {
	name, role := jobset.Labelled(pod)
	return batchjob.Controls(part) && name == job.Name && strings.HasPrefix(part.Name, job.Name+"-"+role+"-")
}
