package jobset

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Annotations of JobSets and of the Jobs in them: each Job has a topology domain for itself, which the node of its first pod decides,
// unless the nodes were labelled for that before.
const (
	exclusiveAnnotation    = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	nodeSelectorAnnotation = "alpha.jobset.sigs.k8s.io/node-selector"
)

// inOrder is the startup policy with which each replicated job waits for the one before it.
const inOrder = "InOrder"

// divide finds out whether the controller makes all pods at once. Replicated jobs that wait for others are gangs of their own; a Job whose pods
// wait for its first one cannot be a gang.
func divide(job *gang.Job, s spec, f *gang.Fields, annotations map[string]string) {
	var active []replicatedJob
	for _, r := range s.ReplicatedJobs {
		if ptr.Deref(r.Replicas, 1) > 0 && r.size() > 0 {
			active = append(active, r)
		}
	}
	for _, r := range active {
		if r.size() > 1 && (exclusive(annotations) || exclusive(r.Template.Annotations)) {
			job.Sequential = fmt.Sprintf("the other pods of a Job of %s are made only when its first has a node (annotation %s)", r.Name, exclusiveAnnotation)
			return
		}
	}
	if job.Sequential = sequential(s, active); job.Sequential == "" {
		return
	}
	job.Division = gang.ByRole
	progress := progressOf(f)
	for i, r := range active {
		awaited := r.DependsOn
		if s.StartupPolicy.Order == inOrder && i > 0 {
			awaited = append(awaited[:len(awaited):len(awaited)], dependency{Name: active[i-1].Name, Status: "Ready"})
		}
		for n := range job.Roles {
			if job.Roles[n].Name == r.Name {
				job.Roles[n].After = unreached(active, awaited, progress)
			}
		}
	}
}

// sequential is why replicated jobs wait for others; "" if they do not.
func sequential(s spec, active []replicatedJob) string {
	for _, r := range active {
		if len(r.DependsOn) > 0 {
			return fmt.Sprintf("its replicated job %s starts only after %s (dependsOn)", r.Name, r.DependsOn[0].Name)
		}
	}
	if s.StartupPolicy.Order == inOrder && len(active) > 1 {
		return fmt.Sprintf("its replicated jobs start one after the other, %s after %s (startupPolicyOrder: InOrder)", active[1].Name, active[0].Name)
	}
	return ""
}

func exclusive(annotations map[string]string) bool {
	_, set := annotations[exclusiveAnnotation]
	_, before := annotations[nodeSelectorAnnotation]
	return set && !before
}

// progress is how many Jobs of a replicated job are ready or have succeeded.
type progress struct{ ready, succeeded int64 }

func progressOf(f *gang.Fields) map[string]progress {
	all := map[string]progress{}
	for _, s := range f.List("status", "replicatedJobsStatus") {
		of := &gang.Fields{Object: &unstructured.Unstructured{Object: s}}
		all[of.String("name")] = progress{ready: int64(of.Int32("ready")), succeeded: int64(of.Int32("succeeded"))}
	}
	return all
}

// unreached is what a replicated job waits for still; "" if for nothing.
func unreached(active []replicatedJob, awaited []dependency, progress map[string]progress) string {
	var left []string
	for _, d := range awaited {
		p, want := progress[d.Name], int64(0)
		for _, r := range active {
			if r.Name == d.Name {
				want = int64(ptr.Deref(r.Replicas, 1))
			}
		}
		switch {
		case d.Status == "Complete" && p.succeeded < want:
			left = append(left, d.Name+" must complete first")
		case d.Status != "Complete" && p.ready+p.succeeded < want:
			left = append(left, d.Name+" must be ready first")
		}
	}
	return strings.Join(left, ", ")
}
