package clustertest

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
)

// VolcanoJob is the kind of a gang that is a Job of Volcano.
const VolcanoJob = "Volcano Job"

const volcanoJobVersion = volcanojob.Group + "/v1alpha1"

// addVolcanoJob adds a Job of Volcano, in a cluster in which its controller runs.
func (c *Cluster) addVolcanoJob(g Gang) {
	c.S.Server.Resources = append(c.S.Server.Resources, "jobs."+volcanoJobVersion)
	c.Deployment("volcano-system", "volcano-controllers", "volcanosh/vc-controller-manager:v1.12.0")
	var tasks []any
	for _, r := range g.roles() {
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g.template(r))
		if err != nil {
			panic(err) // a mistake in a test
		}
		tasks = append(tasks, map[string]any{"name": strings.ToLower(r.Name), "replicas": int64(r.Replicas), "template": template})
	}
	phase := "Pending"
	if len(g.Nodes) > 0 {
		phase = "Running"
	}
	job := map[string]any{
		"apiVersion": volcanoJobVersion, "kind": "Job",
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace, "uid": string(g.uid()), "creationTimestamp": stamp(g.Age)},
		"spec":     map[string]any{"minAvailable": int64(g.Min), "schedulerName": g.Scheduler, "queue": g.Queue, "tasks": tasks},
		"status":   map[string]any{"state": map[string]any{"phase": phase, "lastTransitionTime": stamp(g.Age)}},
	}
	if g.Job != nil {
		g.Job(job)
	}
	c.Object(job)
}
