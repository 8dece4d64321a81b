package advice_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
)

func fragmented(c *clustertest.Cluster) *clustertest.Cluster {
	return c.Nodes(4, 8).Runs("a", 4, "n1").Runs("b", 4, "n2").Runs("c", 4, "n3").Runs("d", 4, "n4")
}

func TestReshape(t *testing.T) {
	runCases(t, answer.Reshape, []testCase{
		{"the fewest members that fit", func(c *clustertest.Cluster) { fragmented(c).Add(gangOf(2, 8)) }, []string{"Worker.gpu=4 Worker.replicas=4"}},
		{"more GPUs than any node", func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(gangOf(1, 16)) }, []string{"Worker.gpu=8 Worker.replicas=2"}},
		{"a minimum below all grows in proportion", func(c *clustertest.Cluster) {
			fragmented(c).Add(gangOf(4, 8, func(g *clustertest.Gang) { g.Min = 2 }))
		}, []string{"Worker.gpu=4 Worker.replicas=8"}},
		{"cannot be split", func(c *clustertest.Cluster) { c.Nodes(1, 1).Runs("a", 1, "n1").Add(gangOf(1, 1)) }, nil},
		{"not enough in all", func(c *clustertest.Cluster) { c.Nodes(2, 8).Runs("a", 8, "n1").Add(gangOf(2, 8)) }, nil},
		{"another container has GPUs", func(c *clustertest.Cluster) {
			fragmented(c).Add(gangOf(1, 4, spec(func(p *corev1.PodSpec) {
				side := *p.Containers[0].DeepCopy()
				side.Name = "side"
				p.Containers = append(p.Containers, side)
			})))
		}, nil},
		{"a master is one", func(c *clustertest.Cluster) {
			fragmented(c).Add(clustertest.Gang{Name: "gang", Kind: "PyTorchJob", Workers: 1, GPUs: 1, More: []clustertest.Role{{Name: "Master", Replicas: 1, GPUs: 8}}})
		}, nil},
		{"a leader of the workers' template", func(c *clustertest.Cluster) {
			fragmented(c).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Kind = "LeaderWorkerSet" }))
		}, []string{"worker.gpu=4 worker.replicas=3"}},
		{"the queue is closed", func(c *clustertest.Cluster) {
			c.Queue("q", "Closed", nil)
			fragmented(c).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Volcano, g.Missing = "q", 2 }))
		}, nil},
	})
}

// What is left of a Job is fewer than its spec has: a number of members there is about all, those that have completed or failed for good included.
func TestJobThatHasBegun(t *testing.T) {
	left := func(status func(*batchv1.JobStatus)) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(4, 8, func(g *clustertest.Gang) {
				g.Kind, g.NoGroup, g.BatchJob = "Job", true, func(j *batchv1.Job) {
					indexed, limit := batchv1.IndexedCompletion, int32(0)
					j.Spec.CompletionMode, j.Spec.BackoffLimitPerIndex = &indexed, &limit
					j.Annotations = map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "gang"}
					status(&j.Status)
				}
				g.Pod = func(_ int, p *corev1.Pod) {
					p.Labels["pod-group.scheduling.sigs.k8s.io/name"], p.Labels["pod-group.scheduling.sigs.k8s.io/min-available"] = "gang", "4"
				}
			}))
		}
	}
	runCases(t, answer.Fewer, []testCase{
		{"none has ended", left(func(*batchv1.JobStatus) {}), []string{"Worker.replicas=2"}},
		{"an index has failed for good", left(func(s *batchv1.JobStatus) {
			failed := "3"
			s.FailedIndexes = &failed
		}), nil},
	})
}

// Where the gang has room as large as it is, another size only loses compute: what is in its way is something else.
func TestAsLargeAsItIs(t *testing.T) {
	for _, kind := range []answer.ActionKind{answer.Reshape, answer.Trim, answer.Fewer, answer.AddNodes} {
		runCases(t, kind, []testCase{{"a member was evicted, and there is room again", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) {
				g.Nodes = []string{"n1", "n2"}
				g.Pod = func(i int, p *corev1.Pod) {
					if i == 1 {
						p.Status.Phase, p.Status.Reason, p.Status.ContainerStatuses = corev1.PodFailed, "Evicted", nil
					}
				}
			}))
		}, nil}})
	}
}

func TestFewer(t *testing.T) {
	runCases(t, answer.Fewer, []testCase{
		{"the most members that fit", func(c *clustertest.Cluster) { c.Nodes(3, 8).Add(gangOf(5, 8)) }, []string{"Worker.replicas=3"}},
		{"never below a declared minimum", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1", "n2").Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Min = 2 }))
		}, nil},
		{"below a declared minimum that is too big for the cluster", func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(gangOf(8, 8, func(g *clustertest.Gang) { g.Min = 5 }))
		}, []string{"minMember=4"}},
		{"YuniKorn makes other placeholders for other members", func(c *clustertest.Cluster) {
			c.Schedules("yunikorn").GangScheduler("").Nodes(3, 8).Serves("llm", 8, "n3")
			c.Add(gangOf(3, 8, func(g *clustertest.Gang) { g.Dialect, g.Scheduler, g.Queue = gang.YuniKorn, "yunikorn", "q" }))
			members := slices.Clone(c.S.Pods[len(c.S.Pods)-3:])
			for i, node := range []string{"n1", "n2", ""} {
				p := members[i].DeepCopy()
				p.Name, p.UID, p.OwnerReferences, p.Spec.NodeName = "tg-"+p.Name, "tg-"+p.UID, nil, node
				p.Annotations["yunikorn.apache.org/placeholder"] = "true"
				c.Put(p)
			}
		}, []string{"Worker.replicas=2"}},
		{"one is the least", func(c *clustertest.Cluster) { c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(2, 8)) }, nil},
		{"of a role that has several", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, GPUs: 8}} }))
		}, []string{"Worker.replicas=1"}},
		{"its nodes are not there, either", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(gangOf(4, 8, spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pool": "none"} })))
		}, []string{"Worker.nodeSelector.pool= Worker.replicas=2"}},
		{"there is room for three, and quota for two", func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": "16"})
			c.Nodes(3, 8).Add(gangOf(4, 8, func(g *clustertest.Gang) { g.Volcano, g.Missing = "q", 4 }))
		}, []string{"Worker.replicas=2"}},
	})
}

func TestTrim(t *testing.T) {
	uses := func(cpu, memory string) clustertest.Gang {
		return clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, CPU: cpu, Memory: memory, Nodes: []string{"n1"}}
	}
	runCases(t, answer.Trim, []testCase{
		{"cpu, whole cores", func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(uses("90500m", "1Gi")).Add(gangOf(1, 8)) }, []string{"Worker.cpu=5"}},
		{"memory, whole Gi", func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(uses("1", "740Gi")).Add(gangOf(1, 8)) }, []string{"Worker.memory=28Gi"}},
		{"both are short: both", func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(uses("90", "740Gi")).Add(gangOf(1, 8)) }, []string{"Worker.cpu=6 Worker.memory=28Gi"}},
		{"GPUs that others leave", func(c *clustertest.Cluster) { c.Nodes(1, 8).Runs("a", 4, "n1").Add(gangOf(1, 8)) }, []string{"Worker.gpu=4"}},
		{"roles that are alike, together", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 1, "n1").Runs("b", 1, "n2").Add(gangOf(1, 8, func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, GPUs: 8}} }))
		}, []string{"Chief.gpu=7 Worker.gpu=7"}},
		{"what a quota of devices leaves", func(c *clustertest.Cluster) {
			c.Queue("q", "Open", map[string]any{"nvidia.com/gpu": "12"})
			c.Nodes(4, 8).Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Volcano, g.Missing = "q", 2 }))
		}, []string{"Worker.gpu=6"}},
		{"a node with a device that is unhealthy", func(c *clustertest.Cluster) {
			c.Nodes(1, 4).Add(gangOf(1, 4))
			c.S.Nodes[0].Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("3")
		}, []string{"Worker.gpu=3"}},
		{"GPUs beyond any node", func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(gangOf(1, 9)) }, []string{"Worker.gpu=8"}},
		{"a sidecar may do without", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				one := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
				p.Containers = append(p.Containers, corev1.Container{Name: "side", Resources: corev1.ResourceRequirements{Requests: one, Limits: one}})
			})))
		}, []string{"Worker.side.gpu=0", "Worker.gpu=7"}},
		{"an init container requests the most", func(c *clustertest.Cluster) {
			c.Nodes(1, 8).Add(uses("48", "1Gi")).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
				p.InitContainers = []corev1.Container{{Name: "fetch", Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "64")}}}
			})))
		}, []string{"Worker.fetch.cpu=48"}},
		{"an init container that stays", func(c *clustertest.Cluster) {
			always := corev1.ContainerRestartPolicyAlways
			c.Nodes(1, 8).Add(gangOf(1, 8, func(g *clustertest.Gang) { g.CPU = "90" }, spec(func(p *corev1.PodSpec) {
				p.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "8")}}}
			})))
		}, []string{"Worker.cpu=88", "Worker.proxy.cpu=6"}},
		{"the room is not a matter of cpu", func(c *clustertest.Cluster) { c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8)) }, nil},
	})
}

// Half of the workers were enough, so half of the smaller ones are.
func TestReshapeKeepsTheShare(t *testing.T) {
	c := fragmented(clustertest.New()).Add(gangOf(4, 8, func(g *clustertest.Gang) { g.Min = 2 }))
	_, found := look(t, c, advice.Options{})
	for _, a := range found.Actions {
		if a.Kind == answer.Reshape && strings.Contains(a.Command, `{"spec":{"minMember":4}}`) {
			return
		}
	}
	t.Errorf("got %+v", found.Actions)
}

// A RayCluster has one head: two smaller ones would be one with half of the devices.
func TestAHeadIsNotSplit(t *testing.T) {
	for _, kind := range []string{"RayJob", "RayCluster"} {
		c := fragmented(clustertest.New()).Add(clustertest.Gang{Name: "gang", Kind: kind, Workers: 1, GPUs: 1, NoGroup: true, More: []clustertest.Role{{Name: "Head", Replicas: 1, GPUs: 8}}})
		_, found := look(t, c, advice.Options{})
		if got := offers(found.Actions, answer.Reshape); len(found.Actions) == 0 || len(got) > 0 {
			t.Errorf("%s: got %q of %d", kind, got, len(found.Actions))
		}
	}
}

// What several roles state alike is one edit of the job, and one line.
func TestOneEditForAllRoles(t *testing.T) {
	c := clustertest.New().Nodes(2, 8).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"pool": "none"} }),
		func(g *clustertest.Gang) { g.More = []clustertest.Role{{Name: "Chief", Replicas: 1, GPUs: 8}} }))
	_, found := look(t, c, advice.Options{})
	if len(found.Actions) == 0 {
		t.Fatal("no advice")
	}
	a := found.Actions[0]
	if a.Kind != answer.Relax || a.Text != "do not require pool=none" || a.Resize != "gangctl resize gang --node-selector pool- -n team" || len(a.Change) != 2 {
		t.Errorf("got %+v", a)
	}
}
