package agreement

import (
	"context"
	"fmt"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// jobs is the resource of TFJobs.
var jobs = kubeflowv1.SchemeGroupVersion.WithResource(kubeflowv1.TFJobPlural)

// jobRoles are the roles of a TFJob that stand for the roles of a gang.
var jobRoles = []kubeflowv1.ReplicaType{kubeflowv1.TFJobReplicaTypeWorker, kubeflowv1.TFJobReplicaTypePS, kubeflowv1.TFJobReplicaTypeEval}

// job is the TFJob whose pods are those of the gang; held means with the gates of its pods.
func (g *Gang) job(namespace string, held bool) (*unstructured.Unstructured, error) {
	minimum := g.Min
	job := &kubeflowv1.TFJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: g.Name},
		Spec: kubeflowv1.TFJobSpec{
			RunPolicy:      kubeflowv1.RunPolicy{SchedulingPolicy: &kubeflowv1.SchedulingPolicy{MinAvailable: &minimum}},
			TFReplicaSpecs: map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{},
		},
	}
	job.SetGroupVersionKind(kubeflowv1.SchemeGroupVersion.WithKind(kubeflowv1.TFJobKind))
	for _, p := range g.Pods {
		var i int
		if _, err := fmt.Sscanf(p.Labels[roleLabel], "r%d", &i); err != nil {
			return nil, fmt.Errorf("pod %s has no role: %w", p.Name, err)
		}
		role := job.Spec.TFReplicaSpecs[jobRoles[i]]
		if role == nil {
			role = &kubeflowv1.ReplicaSpec{Replicas: new(int32), Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: *p.Spec.DeepCopy()}}
			if !held {
				role.Template.Spec.SchedulingGates = nil
			}
			job.Spec.TFReplicaSpecs[jobRoles[i]] = role
		}
		*role.Replicas++
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return nil, fmt.Errorf("convert TFJob %s: %w", g.Name, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// bring creates a gang, held, and waits for its pods.
func (c *fixture) bring(ctx context.Context, g *Gang) error {
	if g.hasObject() && g.Hold != Object && g.Missing() != "object" {
		if err := c.createObject(ctx, g); err != nil {
			return err
		}
	}
	var err error
	if g.Form == ByJob {
		err = c.createJob(ctx, g)
	} else {
		err = each(g.Pods, func(p *corev1.Pod) error {
			_, err := c.Client.Typed.CoreV1().Pods(c.namespace).Create(ctx, p.DeepCopy(), metav1.CreateOptions{})
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", g.Name, err)
	}
	if err := c.until(ctx, "the pods of "+g.Name+" are there", func(context.Context) (bool, error) { return of(c.seen(c.namespace), g) != nil, nil }); err != nil {
		return err
	}
	return c.claimDevices(ctx, of(c.seen(c.namespace), g))
}

func (c *fixture) createJob(ctx context.Context, g *Gang) error {
	job, err := g.job(c.namespace, true)
	if err != nil {
		return err
	}
	_, err = c.Client.Dynamic.Resource(jobs).Namespace(c.namespace).Create(ctx, job, metav1.CreateOptions{})
	return err
}

func (c *fixture) createObject(ctx context.Context, g *Gang) error {
	if _, err := c.Client.Dynamic.Resource(schedulerplugins.GVR()).Namespace(c.namespace).Create(ctx, g.object(c.namespace), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create PodGroup %s: %w", g.Name, err)
	}
	return nil
}
