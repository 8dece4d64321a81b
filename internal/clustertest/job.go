package clustertest

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func stamp(ago time.Duration) string { return Now.Add(-ago).Format(time.RFC3339) }

// addJob adds the object of an operator's job. The launcher of an MPIJob gets the Job that the operator runs it in.
func (c *Cluster) addJob(g Gang) {
	specs := map[string]any{}
	for _, r := range g.roles() {
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodTemplateSpec{Spec: g.spec(r)})
		if err != nil {
			panic(err) // a mistake in a test
		}
		specs[r.Name] = map[string]any{"replicas": int64(r.Replicas), "restartPolicy": "Never", "template": template}
		if g.Kind == "MPIJob" && r.Name == "Launcher" {
			c.put(g.launcher(r))
		}
	}
	field := map[string]string{"TFJob": "tfReplicaSpecs", "PyTorchJob": "pytorchReplicaSpecs", "MPIJob": "mpiReplicaSpecs"}[g.Kind]
	condition := map[string]any{"type": "Created", "status": "True", "reason": g.Kind + "Created", "lastTransitionTime": stamp(g.Age)}
	job := map[string]any{
		"apiVersion": "kubeflow.org/v1", "kind": g.Kind,
		"metadata": map[string]any{"name": g.Name, "namespace": g.Namespace, "uid": string(g.uid()), "creationTimestamp": stamp(g.Age)},
		"spec":     map[string]any{"runPolicy": map[string]any{"suspend": false}, field: specs},
		"status":   map[string]any{"conditions": []any{condition}, "startTime": stamp(g.Age)},
	}
	if g.Job != nil {
		g.Job(job)
	}
	c.Object(job)
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
	j.Spec.Template.Spec = g.spec(workers)
	j.Status.StartTime = &started
	if g.BatchJob != nil {
		g.BatchJob(j)
	}
	c.put(j)
}
