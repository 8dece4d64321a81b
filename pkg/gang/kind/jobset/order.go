package jobset

import (
	"fmt"
	"slices"
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

// Labels of pods that distinguish their Jobs: a hash of the Job's name, and the priority, which releases before 0.7 do not write.
const (
	jobKeyLabel   = "jobset.sigs.k8s.io/job-key"
	priorityLabel = "jobset.sigs.k8s.io/priority"
)

// divide finds out whether the controller makes all pods at once. Replicated jobs that wait for others are gangs of their own; a Job whose pods
// wait for its first one cannot be a gang.
func divide(job *gang.Job, s spec, f *gang.Fields, annotations map[string]string) {
	var active []replicatedJob
	for _, r := range s.ReplicatedJobs {
		if ptr.Deref(r.Replicas, 1) > 0 && r.size() > 0 {
			active = append(active, r)
		}
	}
	job.Exclusive, job.Unmodelled = exclusives(active, annotations)
	for _, r := range active {
		if r.size() <= 1 || r.exclusive(annotations) == "" {
			continue
		}
		if job.Sequential == "" {
			job.Sequential = fmt.Sprintf("the other pods of a Job of %s are made only when its first has a node (annotation %s)", r.Name, exclusiveAnnotation)
		}
		for n := range job.Roles {
			if job.Roles[n].Name == r.Name && r.indexed() {
				job.Roles[n].Follows = gang.Lead{Role: r.Name, Placed: true}
			}
		}
	}
	if job.Sequential != "" {
		return
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

// exclusive is the label of nodes of which each Job has a value for itself, by the annotations of the JobSet or those of the Job; "" without such a rule.
func (r replicatedJob) exclusive(annotations map[string]string) string {
	key, before := annotations[exclusiveAnnotation], false
	if key != "" {
		_, before = annotations[nodeSelectorAnnotation]
	}
	if own := r.Template.Annotations[exclusiveAnnotation]; own != "" {
		_, labelled := r.Template.Annotations[nodeSelectorAnnotation]
		key, before = own, before || labelled
	}
	if before {
		return ""
	}
	return key
}

// exclusives are the rules of Jobs that have a domain each, one for each label of nodes. What is not known of them is a text: a pod without an index of its own is in
// some Job, Jobs of different priorities share domains, and of a label that no node can have no pod is made.
func exclusives(active []replicatedJob, annotations map[string]string) (rules []gang.Exclusive, unmodelled []string) {
	names, keys := map[string][]string{}, []string{}
	known := true
	for _, r := range active {
		key := r.exclusive(annotations)
		if key == "" {
			continue
		}
		if names[key] == nil {
			keys = append(keys, key)
		}
		names[key] = append(names[key], r.Name)
		_, err := gang.TopologyKeys([]string{key})
		known = known && err == nil && r.indexed()
	}
	known = known && (len(keys) == 0 || samePriority(active)) && len(keys) <= gang.MaxPartRules
	if !known {
		return nil, []string{fmt.Sprintf("the topology domains that Jobs have for themselves (annotation %s)", exclusiveAnnotation)}
	}
	for _, key := range keys {
		rule := gang.PartRule{By: []string{jobNameLabel}, Required: key, Exclusive: NameLabel}
		if len(names[key]) < len(active) {
			rule.Selector = fmt.Sprintf("%s in (%s)", roleLabel, strings.Join(names[key], ","))
		}
		rules = append(rules, gang.Exclusive{Rule: rule, Label: jobKeyLabel, Namespaces: true, PriorityLabel: priorityLabel})
	}
	return rules, nil
}

// samePriority reports whether the pods of all Jobs name one priority class, or none.
func samePriority(active []replicatedJob) bool {
	return !slices.ContainsFunc(active, func(r replicatedJob) bool {
		return r.Template.Spec.Template.Spec.PriorityClassName != active[0].Template.Spec.Template.Spec.PriorityClassName
	})
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
