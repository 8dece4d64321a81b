package stages_test

import (
	"testing"
	"time"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Pods are refused to whatever makes them, which is not the job itself for most kinds: the message is about that.
func TestRefusedToTheMaker(t *testing.T) {
	const (
		down   = `Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: Post "https://hook.infra.svc:443/": no endpoints available for service "hook"`
		denied = `admission webhook "policy.example.com" denied the request: missing team label`
	)
	without := func(c *clustertest.Cluster, kind string) {
		g := gangOf(2, 8)
		g.Kind, g.Missing = kind, 2
		c.Nodes(2, 8).Add(g)
	}
	check(t, []testCase{
		{name: "the RayCluster of a RayJob", code: answer.WebhookDown, exit: 5, first: "hook.example.com", wantText: []string{"no endpoints"}, not: []string{"Failed to create"}, build: func(c *clustertest.Cluster) {
			without(c, "RayJob")
			cluster := ""
			for kind, list := range c.S.Custom {
				if kind.Kind == "RayCluster" {
					cluster = list[0].GetName()
				}
			}
			c.Event("RayCluster", "team", cluster, "raycluster-controller", "FailedToCreateWorkerPod", "Failed to create worker Pod team/gang-worker, "+down, time.Minute)
		}},
		{name: "a Job of a JobSet", code: answer.AdmissionDenied, exit: 4, first: "policy.example.com denies the pods: missing team label", build: func(c *clustertest.Cluster) {
			without(c, "JobSet")
			c.Event("Job", "team", "gang-worker-0", "job-controller", "FailedCreate", "Error creating: "+denied, time.Minute)
		}},
		{name: "a Job of the JobSet of a TrainJob", code: answer.AdmissionDenied, exit: 4, first: "policy.example.com", build: func(c *clustertest.Cluster) {
			without(c, "TrainJob")
			c.Event("Job", "team", "gang-node-0", "job-controller", "FailedCreate", "Error creating: "+denied, time.Minute)
			c.Event("Job", "team", "gang-worker-0", "job-controller", "FailedCreate", "Error creating: "+denied, time.Minute)
		}},
		{name: "a StatefulSet of a LeaderWorkerSet", code: answer.AdmissionDenied, exit: 4, first: "policy.example.com", build: func(c *clustertest.Cluster) {
			without(c, "LeaderWorkerSet")
			c.Event("StatefulSet", "team", "gang", "statefulset-controller", "FailedCreate", "create Pod gang-0 in StatefulSet gang failed error: "+denied, time.Minute)
		}},
		{name: "the StatefulSet of a leader", code: answer.AdmissionDenied, exit: 4, first: "policy.example.com", build: func(c *clustertest.Cluster) {
			g := gangOf(2, 8)
			g.Kind, g.Missing = "LeaderWorkerSet", 1
			c.Nodes(2, 8).Add(g)
			c.Event("StatefulSet", "team", "gang-0", "statefulset-controller", "FailedCreate", "create Pod gang-0-1 in StatefulSet gang-0 failed error: "+denied, time.Minute)
		}},
		{name: "a Job of another JobSet", code: answer.BelowQuorum, exit: 3, never: []answer.Code{answer.AdmissionDenied}, build: func(c *clustertest.Cluster) {
			without(c, "JobSet")
			c.Event("Job", "team", "other-worker-0", "job-controller", "FailedCreate", "Error creating: "+denied, time.Minute)
		}},
	})
}
