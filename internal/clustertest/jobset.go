package clustertest

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// ofSet reports whether the pods are those of a JobSet, which may have been made of a TrainJob.
func (g Gang) ofSet() bool { return g.Kind == jobset.Kind || g.Kind == trainjob.Kind }

// setUID is the uid of the JobSet.
func (g Gang) setUID() types.UID { return uid(jobset.Kind, g.Namespace, g.Name) }

// part begins the names of the Jobs of a replicated job.
func (g Gang) part(r Role) string { return g.Name + "-" + strings.ToLower(r.Name) }

// jobSetLabels are those that the controller of JobSets gives to a pod.
func (g Gang) jobSetLabels(r Role, i int) map[string]string {
	return map[string]string{
		"jobset.sigs.k8s.io/jobset-name": g.Name, "jobset.sigs.k8s.io/jobset-uid": string(g.setUID()), "jobset.sigs.k8s.io/replicatedjob-name": strings.ToLower(r.Name),
		"jobset.sigs.k8s.io/job-index": "0", batchv1.JobCompletionIndexAnnotation: fmt.Sprint(i), "job-name": g.part(r) + "-0", batchv1.JobNameLabel: g.part(r) + "-0",
	}
}

// addJobSet adds a JobSet, whose replicated jobs are of one Job each, with these Jobs, in a cluster in which its controller runs.
func (c *Cluster) addJobSet(g Gang) {
	c.S.Server.Resources = append(c.S.Server.Resources, jobset.Resource+"."+jobset.Group+"/"+jobset.Version)
	c.Deployment("jobset-system", "jobset-controller-manager", "registry.k8s.io/jobset/jobset:v0.12.0")
	yes, version := true, jobset.Group+"/"+jobset.Version
	var replicated []any
	for _, r := range g.roles() {
		parallel := int32(r.Replicas)
		spec := batchv1.JobSpec{Parallelism: &parallel, Completions: &parallel, Template: *g.template(r)}
		made := *spec.DeepCopy()
		made.Template.Labels = g.jobSetLabels(r, 0)
		c.put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.part(r) + "-0", UID: uid("Job", g.Namespace, g.part(r)+"-0"), CreationTimestamp: Ago(g.Age),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: version, Kind: jobset.Kind, Name: g.Name, UID: g.setUID(), Controller: &yes}}}, Spec: made})
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&batchv1.JobTemplateSpec{Spec: spec})
		if err != nil {
			panic(err) // a mistake in a test
		}
		replicated = append(replicated, map[string]any{"name": strings.ToLower(r.Name), "replicas": int64(1), "template": template})
	}
	job := map[string]any{
		"apiVersion": version, "kind": jobset.Kind,
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace, "uid": string(g.setUID()), "creationTimestamp": stamp(g.Age)},
		"spec":     map[string]any{"suspend": false, "replicatedJobs": replicated},
		"status":   map[string]any{"replicatedJobsStatus": []any{map[string]any{"name": "worker", "active": int64(1)}}},
	}
	if g.Kind == trainjob.Kind {
		c.addTrainJob(g, job)
	} else if g.Job != nil {
		g.Job(job)
	}
	c.Object(job)
}

// addTrainJob adds a TrainJob of which a JobSet was made. What a test changes is the TrainJob; its JobSet follows it where it is suspended.
func (c *Cluster) addTrainJob(g Gang, set map[string]any) {
	version := trainjob.Group + "/" + trainjob.Version
	c.S.Server.Resources = append(c.S.Server.Resources, trainjob.Resource+"."+version)
	c.Deployment("kubeflow-system", "kubeflow-trainer-controller-manager", "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.3.0")
	spec := map[string]any{"runtimeRef": map[string]any{"name": "torch-distributed"}, "trainer": map[string]any{"numNodes": int64(g.Workers)}, "suspend": false}
	job := map[string]any{
		"apiVersion": version, "kind": trainjob.Kind,
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace, "uid": string(g.uid()), "creationTimestamp": stamp(g.Age)},
		"spec":     spec,
		"status":   map[string]any{"jobsStatus": []any{map[string]any{"name": "node", "active": int64(1)}}},
	}
	if g.Job != nil {
		g.Job(job)
	}
	set["spec"].(map[string]any)["suspend"] = spec["suspend"]
	set["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": version, "kind": trainjob.Kind, "name": g.Name, "uid": string(g.uid()), "controller": true}}
	c.Object(job)
}
