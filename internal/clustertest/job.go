package clustertest

import (
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
)

func stamp(ago time.Duration) string { return Now.Add(-ago).Format(time.RFC3339) }

// addJob adds the object of an operator's job. The launcher of an MPIJob gets the Job that the operator runs it in.
func (c *Cluster) addJob(g Gang) {
	specs := map[string]any{}
	for _, r := range g.roles() {
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g.template(r))
		if err != nil {
			panic(err) // a mistake in a test
		}
		specs[r.Name] = map[string]any{"replicas": int64(r.Replicas), "restartPolicy": "Never", "template": template}
		if g.Kind == "MPIJob" && r.Name == "Launcher" {
			c.put(g.launcher(r))
		}
	}
	reader, known := kinds.ByKind(schema.GroupKind{Group: kubeflow.Group, Kind: g.Kind})
	if !known {
		panic("no kind " + g.Kind) // a mistake in a test
	}
	condition := map[string]any{"type": "Created", "status": "True", "reason": g.Kind + "Created", "lastTransitionTime": stamp(g.Age)}
	job := map[string]any{
		"apiVersion": "kubeflow.org/v1", "kind": g.Kind,
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace, "uid": string(g.uid()), "creationTimestamp": stamp(g.Age)},
		"spec":     map[string]any{"runPolicy": map[string]any{"suspend": false}, reader.Template("")[1]: specs},
		"status":   map[string]any{"conditions": []any{condition}, "startTime": stamp(g.Age)},
	}
	if g.Job != nil {
		g.Job(job)
	}
	c.Object(job)
}

// template is the pod template of a role. Where no operator adds to pods what makes them members of the gang, the template has it.
func (g Gang) template(r Role) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{Spec: g.spec(r)}
	if g.byOperator() || g.NoGroup {
		return t
	}
	t.Labels, t.Annotations = map[string]string{}, map[string]string{}
	g.addToGroup(&t.ObjectMeta, &t.Spec, strings.ToLower(r.Name))
	return t
}

// byOperator reports whether an operator may make the pods members of the gang.
func (g Gang) byOperator() bool {
	return g.Kind != "Job" && g.Kind != leaderworkerset.Kind && !g.ofSet() && !g.isRay() && (g.Dialect == gang.SchedulerPlugins || g.Dialect == gang.Volcano)
}

// launcher is the Job in which the MPI Operator runs the launcher.
func (g Gang) launcher(r Role) *batchv1.Job {
	yes := true
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name + "-launcher", UID: uid("Job", g.Namespace, g.Name+"-launcher"),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubeflow.org/v1", Kind: g.Kind, Name: g.Name, UID: g.uid(), Controller: &yes}}}}
	j.Spec.Template.Spec = g.spec(r)
	return j
}

// addBatchJob adds a Job of Kubernetes itself.
func (c *Cluster) addBatchJob(g Gang) {
	workers := g.roles()[0]
	parallel, started := int32(workers.Replicas), Ago(g.Age)
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name, UID: g.uid(), CreationTimestamp: Ago(g.Age)}}
	j.Spec.Parallelism, j.Spec.Completions = &parallel, &parallel
	j.Spec.Template = *g.template(workers)
	j.Status.StartTime = &started
	if g.BatchJob != nil {
		g.BatchJob(j)
	}
	c.put(j)
}
