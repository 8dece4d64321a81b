package diagnose

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
)

// afterData has the workers of a JobSet wait for its data.
func afterData(c *clustertest.Cluster) {
	for _, set := range c.S.Custom[jobset.Reader().GroupKind] {
		for _, each := range set.Object["spec"].(map[string]any)["replicatedJobs"].([]any) {
			if item := each.(map[string]any); item["name"] == "node" {
				item["dependsOn"] = []any{map[string]any{"name": "data", "status": "Complete"}}
			}
		}
	}
}

// A TrainJob is one gang, whose pods are those of the JobSet that was made of it.
func TestTrainJob(t *testing.T) {
	train := func(g clustertest.Gang) clustertest.Gang {
		g.Kind = "TrainJob"
		return g
	}
	for _, s := range []scenario{
		{name: "a node short", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Wait}, wantText: []string{"PLACEMENT 3/4", "24 of 32 GPUs"}, notText: []string{"JobSet gang"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Runs("busy", 8, "n4").Add(train(waiting(4, 8)))
		}},
		{name: "no node could ever hold a member", code: answer.TooBig, exit: 6, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(train(waiting(4, 16)))
		}},
		{name: "suspended by a user", code: answer.JobSuspended, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"trainjob gang", `"suspend":false`}, build: func(c *clustertest.Cluster) {
			g := train(waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { job["spec"].(map[string]any)["suspend"] = true }
			c.Nodes(2, 8).Add(g)
		}},
		{name: "its controller is down", code: answer.OperatorDown, exit: 5, wantText: []string{"kubeflow-trainer-controller-manager"}, build: func(c *clustertest.Cluster) {
			g := train(waiting(2, 8))
			g.Missing, g.Job = 2, func(job map[string]any) { delete(job, "status") }
			c.Nodes(2, 8).Add(g)
			c.S.Deployments[len(c.S.Deployments)-1].Status.ReadyReplicas = 0
		}},
		{name: "data is prepared before the nodes are made", code: answer.BelowQuorum, exit: 3, wantText: []string{"none of its 2 pods exists yet: data of it must complete first"}, build: func(c *clustertest.Cluster) {
			g := train(waiting(2, 8))
			g.Missing, g.Min, g.More = 2, 2, []clustertest.Role{{Name: "Data", Replicas: 1, CPU: "1", Nodes: []string{"n1"}}}
			c.Nodes(4, 8).Add(g)
			afterData(c)
		}},
	} {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

// inOneGroup is a TrainJob of a runtime whose policy makes a group of all pods: its two nodes wait for the data, which is in the group, too.
func inOneGroup(c *clustertest.Cluster, nodes, data []string, pod func(i int, p *corev1.Pod), first func(p *corev1.Pod)) {
	g := waiting(2, 8)
	g.Kind, g.Min, g.Nodes, g.Missing, g.Pod = "TrainJob", 3, nodes, 2-len(nodes), pod
	g.More = []clustertest.Role{{Name: "Data", Replicas: 1, CPU: "1", Nodes: data, Pod: func(_ int, p *corev1.Pod) { first(p) }}}
	c.Nodes(4, 8).Add(g)
	afterData(c)
	for _, set := range c.S.Custom[jobset.Reader().GroupKind] {
		for _, each := range set.Object["spec"].(map[string]any)["replicatedJobs"].([]any) {
			clustertest.Set(map[string]any{schedulerplugins.PodGroupLabel: "gang"}, "template", "spec", "template", "metadata", "labels")(each.(map[string]any))
		}
		if len(nodes) > 0 {
			clustertest.Set([]any{map[string]any{"name": "data", "succeeded": int64(1)}}, "status", "replicatedJobsStatus")(set.Object)
		}
	}
	for _, j := range c.S.Jobs {
		if len(nodes) > 0 && j.Name == "gang-data-0" {
			j.Status.Succeeded, j.Status.Conditions = 1, []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}
	}
}

// Trainer counts every pod of a TrainJob in its group, also those that end before the nodes are made.
func TestFirstPodsInTheGroup(t *testing.T) {
	as := func(*corev1.Pod) {}
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	for _, s := range []scenario{
		{name: "the nodes run", exit: 0, build: func(c *clustertest.Cluster) { inOneGroup(c, []string{"n1", "n2"}, []string{"n3"}, nil, ended) }},
		{name: "a node does not start", code: answer.ImagePull, exit: 4, notText: []string{"MIN_MEMBER"}, build: func(c *clustertest.Cluster) {
			inOneGroup(c, []string{"n1", "n2"}, []string{"n3"}, func(i int, p *corev1.Pod) {
				if i == 1 {
					podWaits(p, "ImagePullBackOff", "Back-off pulling image")
				}
			}, ended)
		}},
		{name: "the data is prepared", code: answer.BelowQuorum, exit: 3, wantText: []string{"none of its 2 pods exists yet: data of it must complete first"}, notText: []string{"MIN_MEMBER"}, build: func(c *clustertest.Cluster) {
			inOneGroup(c, nil, []string{"n3"}, nil, as)
		}},
		{name: "the data waits for the nodes", code: answer.BelowQuorum, exit: 4, offers: []answer.ActionKind{answer.Fix}, wantText: []string{"its data does not run: 1 pod of PodGroup.scheduling.x-k8s.io gang exists, which needs 3, and the others are made only when this one has completed: it waits for itself", `"minMember":1`},
			notText: []string{"does not place it", "MIN_MEMBER"}, build: func(c *clustertest.Cluster) { inOneGroup(c, nil, nil, nil, as) }},
	} {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

// prepared is a TrainJob whose nodes wait for the data, whose pod does what a test has it do.
func prepared(c *clustertest.Cluster, nodes []string, memory string, pod func(p *corev1.Pod)) {
	g := waiting(2, 8)
	g.Kind, g.Missing, g.NoGroup = "TrainJob", 2, true
	g.More = []clustertest.Role{{Name: "Data", Replicas: 1, CPU: "1", Memory: memory, Nodes: nodes, Pod: func(_ int, p *corev1.Pod) { pod(p) }}}
	c.Nodes(4, 8).Add(g)
	afterData(c)
}

// podWaits has the container of a pod wait for a reason.
func podWaits(p *corev1.Pod, reason, message string) {
	p.Status.Phase = corev1.PodPending
	p.Status.ContainerStatuses[0].Ready = false
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

// What keeps pods from running that come before the members keeps the gang.
func TestPodsBeforeMembers(t *testing.T) {
	for _, s := range []scenario{
		{name: "its image cannot be pulled", code: answer.ImagePull, exit: 4, wantText: []string{"its data does not run: data-0: image train:v1 of container main cannot be pulled", "START"}, notText: []string{"fits now", "resize"}, build: func(c *clustertest.Cluster) {
			prepared(c, []string{"n1"}, "", func(p *corev1.Pod) { podWaits(p, "ImagePullBackOff", "Back-off pulling image") })
		}},
		{name: "it crashes", code: answer.CrashLoop, exit: 4, wantText: []string{"its data does not run: data-0: container main exits with code 3"}, build: func(c *clustertest.Cluster) {
			prepared(c, []string{"n1"}, "", func(p *corev1.Pod) {
				podWaits(p, "CrashLoopBackOff", "back-off")
				p.Status.ContainerStatuses[0].RestartCount = 4
				p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", FinishedAt: clustertest.Ago(time.Minute)}
			})
		}},
		{name: "no node has its memory", code: answer.TooBig, exit: 6, wantText: []string{"its data does not run", "900Gi"}, notText: []string{"fits now", "resize"}, build: func(c *clustertest.Cluster) {
			prepared(c, nil, "900Gi", func(*corev1.Pod) {})
		}},
		{name: "it runs", code: answer.BelowQuorum, exit: 3, wantText: []string{"none of its 2 pods exists yet: data of it must complete first"}, notText: []string{"does not run", "fits now"}, build: func(c *clustertest.Cluster) {
			prepared(c, []string{"n1"}, "", func(*corev1.Pod) {})
		}},
		{name: "its image cannot be pulled, and there is a group", code: answer.ImagePull, exit: 4, also: []answer.Code{answer.BelowQuorum}, build: func(c *clustertest.Cluster) {
			g := waiting(2, 8)
			g.Kind, g.Missing, g.Min = "TrainJob", 2, 2
			g.More = []clustertest.Role{{Name: "Data", Replicas: 1, CPU: "1", Nodes: []string{"n1"}, Pod: func(_ int, p *corev1.Pod) { podWaits(p, "ImagePullBackOff", "Back-off pulling image") }}}
			c.Nodes(4, 8).Add(g)
			afterData(c)
		}},
		{name: "a JobSet waits for what runs", code: answer.BelowQuorum, exit: 3, wantText: []string{"data must complete first"}, notText: []string{"fits now", "does not run"}, build: func(c *clustertest.Cluster) {
			g := waiting(2, 8)
			g.Kind, g.Missing, g.NoGroup = "JobSet", 2, true
			g.More = []clustertest.Role{{Name: "Data", Replicas: 1, CPU: "1", Nodes: []string{"n1"}}}
			c.Nodes(4, 8).Add(g)
			for _, set := range c.S.Custom[jobset.Reader().GroupKind] {
				for _, each := range set.Object["spec"].(map[string]any)["replicatedJobs"].([]any) {
					if item := each.(map[string]any); item["name"] == "worker" {
						item["dependsOn"] = []any{map[string]any{"name": "data", "status": "Complete"}}
					}
				}
			}
		}},
	} {
		t.Run(s.name, func(t *testing.T) { s.play(t) })
	}
}

// The pod that comes first is asked about as the members are.
func TestPodBeforeMembersIsOfTheJob(t *testing.T) {
	c := clustertest.New()
	prepared(c, []string{"n1"}, "", func(p *corev1.Pod) { podWaits(p, "ImagePullBackOff", "Back-off pulling image") })
	i := slices.IndexFunc(c.S.Pods, func(p *corev1.Pod) bool { return strings.Contains(p.Name, "-data-") })
	a, err := Explain(t.Context(), c.Done(), Query{Kind: "pod", Namespace: "team", Name: c.S.Pods[i].Name}, Options{})
	if err != nil || a.Primary.Code != answer.ImagePull || a.Job.Kind != "TrainJob" {
		t.Errorf("got %+v, %v", a, err)
	}
}
