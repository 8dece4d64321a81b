// Package historytest builds clusters whose gangs have events in their history, for the tests of reports and of their layout.
package historytest

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// Job is the name of the gang that every cluster is about, in namespace team.
const Job = "llama"

// Secret is the value of an environment variable, which no report may show, and Markup what would break a page that does not escape.
const (
	Secret = "s3cret"
	Markup = `<script>alert("x")</script>`
)

func command(job map[string]any) {
	job["metadata"].(map[string]any)["annotations"] = map[string]any{
		provenance.CommandAnnotation: "gangctl submit tf llama --image train:v1 --workers 4 --gpus 8 --env TOKEN=" + Secret + " --env=OTHER=" + Secret + " -- python train.py --env '" + Markup + "'"}
}

// Pending is a gang that does not fit, and its events.
func Pending() *snapshot.Snapshot {
	const refusal = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu"
	c := clustertest.New().Nodes(3, 8)
	c.S.Nodes[2].Spec.Unschedulable = true
	c.Add(clustertest.Gang{Name: "mistral", Workers: 3, GPUs: 4, Nodes: []string{"n1", "n2", "n3"}, Age: 3 * time.Hour})
	c.Add(clustertest.Gang{Name: Job, Workers: 4, GPUs: 8, Age: 25 * time.Minute, Job: command, Pod: func(_ int, p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: refusal, LastTransitionTime: clustertest.Ago(24 * time.Minute)}}
	}})
	for i := range 4 {
		c.Event("Pod", "team", fmt.Sprintf("%s-worker-%d", Job, i), clustertest.Scheduler, "FailedScheduling", refusal, time.Duration(24-i)*time.Minute)
	}
	c.Event("PodGroup", "team", Job, clustertest.Scheduler, "Unschedulable", "4 members "+Markup+" do not fit", 20*time.Minute)
	return c.Done()
}

// Restarted is a gang of workers on so many nodes of eight GPUs that runs for an hour. Of its members, one was restarted in its
// place a quarter of an hour ago, and another one, before that, was replaced by a new pod.
func Restarted(workers int) *snapshot.Snapshot {
	const age = time.Hour
	count := (workers + 3) / 4 // four members of two GPUs a node
	c := clustertest.New().Nodes(count+1, 8)
	c.S.Nodes[0].Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("7")
	on := make([]string, workers)
	for i := range on {
		on[i] = fmt.Sprintf("n%d", 2+i/4)
	}
	c.Add(clustertest.Gang{Name: "mistral", Workers: 2, GPUs: 2, Nodes: []string{"n1", "n1"}, Age: 2 * time.Hour})
	c.Add(clustertest.Gang{Name: Job, Workers: workers, GPUs: 2, Nodes: on, Age: age, Job: command, Pod: func(i int, p *corev1.Pod) {
		switch i {
		case 1:
			runs(p, age, 40*time.Second, time.Minute)
			restart(p, age, 45*time.Minute)
		case 2:
			p.CreationTimestamp, p.UID = clustertest.Ago(30*time.Minute), "second"
			runs(p, 30*time.Minute, 5*time.Second, 20*time.Second)
		default:
			runs(p, age, 40*time.Second, time.Duration(60+i%7)*time.Second)
		}
	}})
	for reason, after := range map[string]time.Duration{"Scheduled": 40 * time.Second, "Started": time.Minute, "Killing": 29 * time.Minute} {
		c.Event("Pod", "team", Job+"-worker-2", "kubelet", reason, "it was "+reason, age-after).InvolvedObject.UID = "first"
	}
	return c.Done()
}

// runs makes a pod get its node and start so long after it was created.
func runs(p *corev1.Pod, age, placed, started time.Duration) {
	start := clustertest.Ago(age - started)
	ready := clustertest.Ago(age - started - 5*time.Second)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: clustertest.Ago(age - placed)},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ready}}
	p.Status.ContainerStatuses[0].State.Running.StartedAt = start
}

// restart makes the container of a pod end so long after its job was created, and run again since.
func restart(p *corev1.Pod, age, after time.Duration) {
	s := &p.Status.ContainerStatuses[0]
	s.RestartCount = 2
	s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled",
		StartedAt: s.State.Running.StartedAt, FinishedAt: clustertest.Ago(age - after)}
	s.State.Running.StartedAt = clustertest.Ago(age - after - 20*time.Second)
	p.Status.Conditions[1].LastTransitionTime = clustertest.Ago(age - after - 30*time.Second)
}
