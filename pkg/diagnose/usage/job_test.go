package usage_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// row is what a test compares of a job.
type row struct {
	State             gang.State
	Ready, Min, Total int32
	Requested, Held   int64
	Idle, Wait        float64 // minutes
}

func rowOf(j usage.JobUsage) row {
	return row{j.State, j.Ready, j.Min, j.Total, j.Requests.AllDevices(), j.Held.AllDevices(), j.IdleMinutes, j.WaitSeconds / 60}
}

func TestJobs(t *testing.T) {
	llama := clustertest.Gang{Name: "llama", Workers: 4, GPUs: 2, Age: 10 * time.Minute}
	with := func(change func(*clustertest.Gang)) clustertest.Gang { g := llama; change(&g); return g }
	tests := map[string]struct {
		gang clustertest.Gang
		want row
	}{
		"waits":     {llama, row{gang.Pending, 0, 4, 4, 8, 0, 0, 10}},
		"runs":      {with(func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n1", "n2", "n2"} }), row{gang.Running, 4, 4, 4, 8, 8, 0, 0}},
		"no pods":   {with(func(g *clustertest.Gang) { g.Missing = 4 }), row{gang.Pending, 0, 4, 4, 8, 0, 0, 10}},
		"suspended": {with(func(g *clustertest.Gang) { g.Missing = 4; g.Job = suspend }), row{gang.Suspended, 0, 4, 4, 8, 0, 0, 0}},
		"elastic": {with(func(g *clustertest.Gang) { g.Min = 2; g.Nodes = []string{"n1", "n1", "n2"} }),
			row{gang.Running, 3, 2, 4, 8, 6, 0, 0}},
		// Half of it runs since the pods started, 9m58s ago: 2 members, 2 GPUs each.
		"half": {with(func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n1"} }), row{gang.Degraded, 2, 4, 4, 8, 4, 4 * 598. / 60, 9 + 59./60}},
		// It was whole until two minutes ago, when a member was replaced.
		"lost a member": {with(func(g *clustertest.Gang) {
			g.Nodes = []string{"n1", "n1", "n2"}
			g.Pod = func(i int, p *corev1.Pod) {
				if i == 3 {
					p.CreationTimestamp = clustertest.Ago(2 * time.Minute)
				}
			}
		}), row{gang.Degraded, 3, 4, 4, 8, 6, 12, 2}},
		"a member failed": {with(func(g *clustertest.Gang) {
			g.Nodes = []string{"n1", "n1", "n2", "n2"}
			g.Pod = func(i int, p *corev1.Pod) {
				if i == 3 {
					failed(p, 3*time.Minute)
				}
			}
		}), row{gang.Degraded, 3, 4, 4, 8, 6, 18, 3}},
		// The one that leaves still holds.
		"a member is leaving": {with(func(g *clustertest.Gang) {
			g.Nodes = []string{"n1", "n1", "n2", "n2"}
			g.Pod = func(i int, p *corev1.Pod) {
				if i == 3 {
					leaving(p, time.Minute)
				}
			}
		}), row{gang.Degraded, 3, 4, 4, 8, 8, 8, 1}},
		"a member's node is away": {with(func(g *clustertest.Gang) { g.Nodes = []string{"n1", "n1", "n2", "away"} }), row{gang.Degraded, 3, 4, 4, 8, 8, 8 * 5, 5}},
		// The two above the minimum never had a place: it broke when one of the others failed.
		"a needed member failed": {with(func(g *clustertest.Gang) {
			g.Min, g.Nodes = 2, []string{"n1", "n1"}
			g.Pod = func(i int, p *corev1.Pod) {
				if i == 1 {
					failed(p, time.Minute)
				}
			}
		}), row{gang.Degraded, 1, 2, 4, 8, 2, 2, 1}},
		// Of the two above the minimum one has no pod at all, so that nobody knows since when.
		"a needed member failed, another is missing": {with(func(g *clustertest.Gang) {
			g.Min, g.Nodes, g.Missing = 2, []string{"n1", "n1"}, 1
			g.Pod = func(i int, p *corev1.Pod) {
				if i == 1 {
					failed(p, time.Minute)
				}
			}
		}), row{gang.Degraded, 1, 2, 4, 8, 2, 2, 1}},
		"a member above the minimum failed": {with(func(g *clustertest.Gang) {
			g.Min, g.Nodes = 2, []string{"n1", "n1", "n2", "n2"}
			g.Pod = func(i int, p *corev1.Pod) {
				if i == 3 {
					failed(p, 3*time.Minute)
				}
			}
		}), row{gang.Degraded, 3, 2, 4, 8, 6, 0, 3}},
		// The first wave ran for ten hours, the second has waited for a minute.
		"the second wave of a batch job waits": {clustertest.Gang{Name: "llama", Kind: "Job", Workers: 8, GPUs: 2, Min: 4, Age: 10 * time.Hour, Nodes: []string{"n1", "n1", "n2", "n2"},
			BatchJob: func(j *batchv1.Job) {
				parallel := int32(4)
				j.Spec.Parallelism = &parallel
			},
			Pod: func(i int, p *corev1.Pod) {
				if i < 4 {
					p.Status.Phase = corev1.PodSucceeded
				} else {
					p.CreationTimestamp = clustertest.Ago(time.Minute)
				}
			}}, row{gang.Pending, 4, 4, 8, 8, 0, 0, 1}},
		"starts": {with(func(g *clustertest.Gang) {
			g.Nodes = []string{"n1", "n1", "n2", "n2"}
			g.Pod = func(_ int, p *corev1.Pod) {
				p.Status.Phase = corev1.PodPending
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
			}
		}), row{gang.Starting, 0, 4, 4, 8, 8, 0, 10}},
		"a batch job": {clustertest.Gang{Name: "llama", Kind: "Job", Workers: 2, GPUs: 2, NoGroup: true, Nodes: []string{"n1"}}, row{gang.Running, 1, 1, 2, 4, 2, 0, 0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New().Nodes(2, 8)
			clustertest.NotReady(c.Node("away", 8), 5*time.Minute)
			r := jobsOf(c.Add(tt.gang))
			if len(r.Jobs) != 1 || len(r.Others) != 0 {
				t.Fatalf("got %+v", r)
			}
			if diff := cmp.Diff(tt.want, rowOf(r.Jobs[0]), cmp.Comparer(func(a, b float64) bool { return a-b < 0.001 && b-a < 0.001 })); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// failed makes a pod one that ended badly.
func failed(p *corev1.Pod, ago time.Duration) {
	p.Status.Phase = corev1.PodFailed
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: clustertest.Ago(ago)}}
}

func suspend(job map[string]any) {
	job["spec"].(map[string]any)["runPolicy"].(map[string]any)["suspend"] = true
}

// Who may not list nodes sees what pods hold all the same.
func TestJobsWithoutNodes(t *testing.T) {
	c := clustertest.New().Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 2, Nodes: []string{"n1", "n1"}})
	c.S.Denied = append(c.S.Denied, snapshot.Denial{Resource: "nodes"})
	jobs := usage.OfJobs(view.New(c.Done())).Jobs
	if len(jobs) != 1 || jobs[0].Held.Devices["nvidia.com/gpu"] != 4 || jobs[0].Held.Pods != 2 {
		t.Errorf("got %+v", jobs)
	}
}

// A tenant who may not list nodes, and a pool that is scaled to zero: no node and no running pod has the kind that a job waits for.
func TestJobsRequestWhatNoNodeHas(t *testing.T) {
	c := clustertest.New().Add(clustertest.Gang{Name: "llama", Workers: 4, GPUs: 8})
	if r := nodesOf(c); len(r.Totals) != 0 {
		t.Errorf("no node has any: got %+v", r.Totals)
	}
	c.S.Denied = append(c.S.Denied, snapshot.Denial{Resource: "nodes"})
	jobs := jobsOf(c).Jobs
	if len(jobs) != 1 || jobs[0].Requests.Devices[nvidia] != 32 || jobs[0].Held.AllDevices() != 0 {
		t.Errorf("got %+v", jobs)
	}
}

// A job that has ended is shown as long as it holds something.
func TestEndedJobs(t *testing.T) {
	ended := func(nodes ...string) usage.Jobs {
		return jobsOf(clustertest.New().Nodes(1, 8).Add(clustertest.Gang{Name: "done", Workers: 1, GPUs: 2, Nodes: nodes, Missing: 1 - len(nodes), Kind: "Job", NoGroup: true,
			BatchJob: func(j *batchv1.Job) {
				j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: clustertest.Ago(time.Minute)}}
			}}))
	}
	if r := ended(); len(r.Jobs) != 0 {
		t.Errorf("got %+v", r)
	}
	if r := ended("n1"); len(r.Jobs) != 1 || r.Jobs[0].State != gang.Succeeded || r.Jobs[0].Held.AllDevices() != 2 {
		t.Errorf("got %+v", r)
	}
}

func TestOthers(t *testing.T) {
	c := clustertest.New().Nodes(2, 8).Serves("api", 1, "n1", "n2")
	c.Put(bare("p", "n1", "nvidia.com/gpu", "3"))
	c.Daemon("agent", "n1", "1")
	got := map[string]int64{}
	for _, o := range jobsOf(c).Others {
		got[o.Kind+" "+o.Namespace+"/"+o.Name] = o.Held.AllDevices()
	}
	if diff := cmp.Diff(map[string]int64{"Deployment serving/api": 2, "Pod team/p": 3, "DaemonSet kube-system/agent": 0}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if r := jobsOf(c).In("serving"); len(r.Others) != 1 {
		t.Errorf("got %+v", r.Others)
	}
}
