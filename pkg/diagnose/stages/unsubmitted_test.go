package stages_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// rayUp is a RayJob with a status whose members have been ready for some time.
func rayUp(c *clustertest.Cluster, status string, since time.Duration) {
	ready := func(_ int, p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: clustertest.Ago(since)}}
	}
	c.Nodes(2, 8).Add(gangOf(2, 8, ungrouped, pods(ready), job(set(status, "status", "jobDeploymentStatus")), func(g *clustertest.Gang) {
		g.Kind, g.Nodes, g.Age = "RayJob", []string{"n1", "n2"}, time.Hour
		g.More = []clustertest.Role{{Name: "Head", Replicas: 1, CPU: "1", Memory: "1Gi", Nodes: []string{"n1"}, Pod: ready}}
	}))
}

// What the members of a RayJob run is submitted to them once they are up: before that they do nothing.
func TestUnsubmitted(t *testing.T) {
	suspended := func(c *clustertest.Cluster) {
		yes := true
		c.Put(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang", UID: "submitter", CreationTimestamp: clustertest.Ago(time.Hour),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "ray.io/v1", Kind: "RayJob", Name: "gang", UID: "RayJob:team/gang", Controller: &yes}}},
			Spec: batchv1.JobSpec{Suspend: &yes, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "ray-job-submitter"}}}}}})
	}
	check(t, []testCase{
		{name: "long ago", code: answer.OperatorDown, exit: 5, first: "ready for 40m and do nothing: kuberay-operator has not submitted", wantText: []string{"logs deployment/kuberay-operator"}, build: func(c *clustertest.Cluster) { rayUp(c, "Initializing", 40*time.Minute) }},
		{name: "just now", code: answer.ContainersStarting, exit: 3, first: "ready for 60s|ready for 1m", build: func(c *clustertest.Cluster) { rayUp(c, "Initializing", time.Minute) }},
		{name: "its operator is down", code: answer.OperatorDown, exit: 5, first: "kuberay-operator is down", build: func(c *clustertest.Cluster) {
			rayUp(c, "Initializing", 40*time.Minute)
			c.S.Deployments[len(c.S.Deployments)-1].Status.ReadyReplicas = 0
		}},
		{name: "a user is to do it", exit: 0, wantText: []string{"wait for a user to submit what they run"}, build: func(c *clustertest.Cluster) { rayUp(c, "Waiting", 40*time.Minute) }},
		{name: "it is done", exit: 0, not: []string{"submit"}, build: func(c *clustertest.Cluster) { rayUp(c, "Running", 40*time.Minute) }},
		{name: "its submitter is suspended, and it is not", code: answer.JobSuspended, exit: 4, first: "its submitter does not run: gang is suspended", fix: "resume it", build: func(c *clustertest.Cluster) {
			rayUp(c, "Running", 40*time.Minute)
			suspended(c)
		}},
	})
}
