package advice_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// limited is a job that runs on nodes for an hour, and may do so for some time longer.
func limited(name string, left time.Duration, nodes ...string) clustertest.Gang {
	return clustertest.Gang{Namespace: "research", Name: name, Workers: len(nodes), GPUs: 8, Nodes: nodes, Age: time.Hour, Job: limit(time.Hour + left)}
}

func limit(d time.Duration) func(map[string]any) {
	return func(job map[string]any) {
		job["spec"].(map[string]any)["runPolicy"] = map[string]any{"activeDeadlineSeconds": int64(d / time.Second)}
	}
}

// mpi is an MPIJob with its workers on n1 and n2 and its launcher on n3, or n1 where there is none, that has run for an hour with a run policy.
func mpi(policy map[string]any) clustertest.Gang {
	return clustertest.Gang{Namespace: "research", Name: "a", Kind: "MPIJob", Workers: 2, GPUs: 8, Nodes: []string{"n1", "n2"}, Age: time.Hour,
		More: []clustertest.Role{{Name: "Launcher", Replicas: 1, Nodes: []string{"n3"}}}, Job: func(job map[string]any) {
			if policy != nil {
				job["spec"].(map[string]any)["runPolicy"] = policy
			}
		}}
}

// A job that has nodes for some of its members alone, and none for the others, does not end; and one that is over its limit does at no time that is known.
func TestWhatDoesNotEnd(t *testing.T) {
	part := func(change ...func(*clustertest.Gang)) clustertest.Gang {
		g := clustertest.Gang{Namespace: "research", Name: "part", Workers: 2, GPUs: 8, Nodes: []string{"n1"}}
		for _, f := range change {
			f(&g)
		}
		return g
	}
	limit := func(seconds int64) func(*clustertest.Gang) {
		return func(g *clustertest.Gang) {
			g.Job = func(job map[string]any) {
				job["spec"].(map[string]any)["runPolicy"].(map[string]any)["activeDeadlineSeconds"] = seconds
			}
		}
	}
	nowhere := selects("gpu", "h200")
	for name, tt := range map[string]struct {
		build   func(*clustertest.Cluster)
		verdict answer.Verdict
		wait    string
		eta     bool
	}{
		"the other has room after a third": {func(c *clustertest.Cluster) { c.Nodes(2, 8).Runs("third", 8, "n2").Add(part()).Add(gangOf(1, 8)) }, answer.Waiting, "research/part or research/third ends", false},
		"the other matches no node":        {func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(part(nowhere)).Add(gangOf(1, 8)) }, answer.Blocked, "", false},
		"the other has a limit":            {func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(part(nowhere, limit(3600))).Add(gangOf(1, 8)) }, answer.Waiting, "research/part ends", true},
		"the other is over its limit": {func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(part(nowhere, limit(60))).Add(gangOf(1, 8)) }, answer.Waiting,
			"research/part (should have ended at 13:51) ends", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New()
			tt.build(c)
			r, found := look(t, c, advice.Options{})
			wait, eta := "", false
			for _, a := range found.Actions {
				if a.Kind == answer.Wait {
					wait, eta = a.Text, a.ETA != nil
				}
			}
			if r.Verdict != tt.verdict || wait != tt.wait || eta != tt.eta {
				t.Errorf("got %s, %q, with a time: %v; %s", r.Verdict, wait, eta, r.Primary.Message)
			}
			if evicts := offers(found.Actions, answer.Evict); (len(evicts) > 0) != (r.Verdict == answer.Blocked) {
				t.Errorf("got %v", evicts)
			}
		})
	}
}

func TestWait(t *testing.T) {
	runCases(t, answer.Wait, []testCase{
		{"either of two", func(c *clustertest.Cluster) { c.Nodes(2, 8).Runs("a", 8, "n1").Runs("b", 8, "n2").Add(gangOf(1, 8)) },
			[]string{"count=1 jobs=[research/a research/b]"}},
		{"both", func(c *clustertest.Cluster) { c.Nodes(2, 8).Runs("a", 8, "n1").Runs("b", 8, "n2").Add(gangOf(2, 8)) },
			[]string{"count=2 jobs=[research/a research/b]"}},
		{"any two of four", func(c *clustertest.Cluster) { fragmented(c).Add(gangOf(2, 8)) },
			[]string{"count=2 jobs=[research/a research/b research/c research/d]"}},
		{"any four of six", func(c *clustertest.Cluster) {
			c.Nodes(6, 8)
			for i, job := range strings.Split("abcdef", "") {
				c.Runs(job, 8, fmt.Sprintf("n%d", i+1))
			}
			c.Add(gangOf(4, 8))
		}, []string{"count=4 jobs=[research/a research/b research/c research/d research/e research/f]"}},
		{"four, of which no other does in place of any", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 4, "n1").Runs("b", 4, "n1").Runs("c", 4, "n2").Runs("d", 4, "n2").Runs("e", 4, "n3").Serves("web", 4, "n3").Add(gangOf(2, 8))
		}, []string{"count=4 jobs=[research/a research/b research/c research/d]"}},
		{"four of which the last could be another, and the first could not", func(c *clustertest.Cluster) {
			c.Nodes(5, 8)
			for i, job := range strings.Split("abcde", "") {
				c.Runs(job, 8, fmt.Sprintf("n%d", i+1))
			}
			label(c, "disk", "fast", "fast", "fast", "slow", "slow")
			c.Add(gangOf(3, 8, selects("disk", "fast"), func(g *clustertest.Gang) {
				g.More = []clustertest.Role{{Name: "PS", Replicas: 1, GPUs: 8, Spec: func(p *corev1.PodSpec) { p.NodeSelector = nil }}}
			}))
		}, []string{"count=4 jobs=[research/a research/b research/c research/d]"}},
		{"one, or two others", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n1").Runs("b", 4, "n2").Runs("c", 4, "n2").Runs("d", 8, "n3").Serves("web", 0, "n3").Add(gangOf(1, 8))
			c.S.Nodes[2].Spec.Unschedulable = true
		}, []string{"count=1 jobs=[research/a]", "count=2 jobs=[research/b research/c]"}},
		{"whole jobs, also where a part would do", func(c *clustertest.Cluster) { c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(1, 8)) },
			[]string{"count=1 jobs=[research/a]"}},
		{"workers that stay when their job ends", func(c *clustertest.Cluster) { c.Nodes(2, 8).Add(mpi(nil)).Add(gangOf(2, 8)) }, nil},
		{"the launcher of workers that stay", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Node("n3", 0)
			c.Add(mpi(nil)).Add(gangOf(1, 0, func(g *clustertest.Gang) { g.CPU = "90" }))
		}, []string{"count=1 jobs=[research/a]"}},
		{"what is left when the node that is coming is there", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Runs("b", 8, "n2").Add(gangOf(2, 8))
			comes(c, 3)
		}, []string{"count=2 jobs=[research/a research/b]", "count=1 jobs=[research/a research/b]"}},
		{"what is enough without the node that is coming", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(gangOf(2, 8))
			comes(c, 3)
		}, []string{"count=1 jobs=[research/a]"}},
		{"what is preempted when the others have ended", func(c *clustertest.Cluster) {
			high := clustertest.Gang{Namespace: "research", Name: "high", Workers: 1, GPUs: 8, Nodes: []string{"n2"}}
			priority(100)(&high)
			c.Nodes(2, 8).Runs("a", 8, "n1").Add(high).Add(gangOf(2, 8, priority(50)))
		}, []string{"count=1 jobs=[research/high]"}},
		{"what may be preempted at once", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Runs("a", 8, "n1").Runs("b", 8, "n2").Add(gangOf(2, 8, priority(50)))
		}, []string{"count=2 jobs=[research/a research/b]"}},
		{"services do not end", func(c *clustertest.Cluster) { c.Nodes(1, 8).Serves("web", 8, "n1").Add(gangOf(1, 8)) }, nil},
		{"what ends is not enough", func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Serves("web", 8, "n1").Runs("a", 8, "n2").Add(gangOf(2, 8))
		}, nil},
		{"a gang that waits for this one does not end", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 8, "n3").Add(clustertest.Gang{Namespace: "research", Name: "other", Workers: 2, GPUs: 8, Nodes: []string{"n2"}})
			c.Add(gangOf(2, 8, func(g *clustertest.Gang) { g.Nodes = []string{"n1"} }))
		}, []string{"count=1 jobs=[research/a]"}},
		{"the earliest known end first", func(c *clustertest.Cluster) {
			c.Nodes(3, 8).Runs("a", 4, "n1").Runs("b", 4, "n1").Add(limited("c", 2*time.Hour, "n2")).Add(limited("d", time.Hour, "n3")).Add(gangOf(1, 8))
		}, []string{"count=1 jobs=[research/d research/c]", "count=2 jobs=[research/a research/b]"}},
	})
}

// eta is the estimate of the best wait, in short.
func eta(t *testing.T, c *clustertest.Cluster) string {
	t.Helper()
	_, found := look(t, c, advice.Options{})
	for _, a := range found.Actions {
		if a.Kind != answer.Wait {
			continue
		}
		if a.ETA == nil {
			return a.Text + ": unknown"
		}
		return fmt.Sprintf("%s: %s, %s", a.Text, a.ETA.Format("15:04"), a.ETASource)
	}
	return "no wait"
}

// An end is known if every one of those that have to end has a limit, and is that of the last of them.
func TestWaitETA(t *testing.T) {
	tests := map[string]struct {
		build func(c *clustertest.Cluster)
		want  string
	}{
		"a limit": {func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(limited("a", 30*time.Minute, "n1")).Add(gangOf(1, 8)) },
			"research/a ends: 14:30, activeDeadlineSeconds of TFJob research/a"},
		"the first of two": {func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(limited("a", time.Hour, "n1")).Add(limited("b", 30*time.Minute, "n2")).Add(gangOf(1, 8))
		}, "research/b or research/a ends: 14:30, activeDeadlineSeconds of TFJob research/b"},
		"both of two": {func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(limited("a", time.Hour, "n1")).Add(limited("b", 30*time.Minute, "n2")).Add(gangOf(2, 8))
		}, "all of research/b, research/a end: 15:00, activeDeadlineSeconds of TFJob research/a"},
		"one of the two is not known": {func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(limited("a", time.Hour, "n1")).Runs("b", 8, "n2").Add(gangOf(2, 8))
		}, "all of research/a, research/b end: unknown"},
		"over its limit": {func(c *clustertest.Cluster) { c.Nodes(1, 8).Add(limited("a", -10*time.Minute, "n1")).Add(gangOf(1, 8)) },
			"research/a (should have ended at 13:50) ends: unknown"},
		"workers that go with their job": {func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(mpi(map[string]any{"cleanPodPolicy": "Running", "activeDeadlineSeconds": int64(7200)})).Add(gangOf(2, 8))
		}, "research/a ends: 15:00, activeDeadlineSeconds of MPIJob research/a"},
		"workers that go later than their job": {func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(mpi(map[string]any{"ttlSecondsAfterFinished": int64(600), "activeDeadlineSeconds": int64(7200)})).Add(gangOf(2, 8))
		}, "research/a ends: 15:10, activeDeadlineSeconds of MPIJob research/a and its ttlSecondsAfterFinished"},
		"workers that go with their job, and a server that goes later": {func(c *clustertest.Cluster) {
			a := limited("a", time.Hour, "n1")
			limit := a.Job
			a.More = []clustertest.Role{{Name: "PS", Replicas: 1, Nodes: []string{"n1"}}}
			a.Job = func(job map[string]any) {
				limit(job)
				job["spec"].(map[string]any)["runPolicy"].(map[string]any)["ttlSecondsAfterFinished"] = int64(604800)
			}
			c.Nodes(1, 8).Add(a).Add(gangOf(1, 8))
		}, "research/a ends: 15:00, activeDeadlineSeconds of TFJob research/a"},
		"a server that goes later, for a gang that needs no device": {func(c *clustertest.Cluster) {
			a := limited("a", time.Hour, "n1")
			limit := a.Job
			a.More = []clustertest.Role{{Name: "PS", Replicas: 1, CPU: "80", Nodes: []string{"n1"}}}
			a.Job = func(job map[string]any) {
				limit(job)
				job["spec"].(map[string]any)["runPolicy"].(map[string]any)["ttlSecondsAfterFinished"] = int64(600)
			}
			c.Nodes(1, 8).Add(a).Add(gangOf(1, 0, func(g *clustertest.Gang) { g.CPU = "64" }))
		}, "research/a ends: 15:10, activeDeadlineSeconds of TFJob research/a and its ttlSecondsAfterFinished"},
		"workers that stay": {func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(mpi(map[string]any{"activeDeadlineSeconds": int64(7200)})).Add(gangOf(2, 8))
		}, "no wait"},
		"no limit": {func(c *clustertest.Cluster) { c.Nodes(1, 8).Runs("a", 8, "n1").Add(gangOf(1, 8)) }, "research/a ends: unknown"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New()
			tt.build(c)
			if got := eta(t, c); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// behind is a strict queue in which team/first, which needs both nodes, is before team/gang, which needs one of them. n1 is
// held by a job.
func behind(consumer, first func(*clustertest.Gang)) *clustertest.Cluster {
	c := clustertest.New().Nodes(2, 8)
	c.Queue("q", "Open", nil).Object["spec"].(map[string]any)["dequeueStrategy"] = "fifo"
	h := clustertest.Gang{Namespace: "research", Name: "a", Workers: 1, GPUs: 8, Nodes: []string{"n1"}, Age: time.Hour}
	consumer(&h)
	f := clustertest.Gang{Name: "first", Workers: 2, GPUs: 8, Volcano: "q", Age: 40 * time.Second}
	first(&f)
	return c.Add(h).Add(f).Add(gangOf(1, 8, func(g *clustertest.Gang) { g.Volcano, g.Age = "q", 30*time.Second }))
}

func ends(in time.Duration) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) { g.Job = limit(g.Age + in) }
}

// runsFor lets a gang run for some time from when it starts: its controller has not seen it yet, so the limit has not begun.
func runsFor(d time.Duration) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) {
		g.Job = func(job map[string]any) {
			limit(d)(job)
			delete(job["status"].(map[string]any), "startTime")
		}
	}
}

func unlimited(*clustertest.Gang) {}

// Behind another gang the estimate is a chain: what that waits for ends, then that runs and ends. It is unknown if any link is.
func TestWaitBehindOthers(t *testing.T) {
	const a = "activeDeadlineSeconds of TFJob research/a"
	tests := map[string]struct {
		cluster *clustertest.Cluster
		want    string
	}{
		"both are known": {behind(ends(30*time.Minute), runsFor(time.Hour)),
			"team/first (ahead) ends: 15:30, " + a + ", then activeDeadlineSeconds of TFJob team/first"},
		"the limit of the first has begun": {behind(ends(30*time.Minute), ends(2*time.Hour)),
			"team/first (ahead) ends: 16:00, " + a + ", then activeDeadlineSeconds of TFJob team/first"},
		"how long the first runs is not known": {behind(ends(30*time.Minute), unlimited), "team/first (ahead) ends: unknown"},
		"when the first starts is not known":   {behind(unlimited, runsFor(time.Hour)), "team/first (ahead) ends: unknown"},
		"earlier runs show how long the first is": {func() *clustertest.Cluster {
			c := behind(ends(30*time.Minute), func(g *clustertest.Gang) { g.Name = "first-9" })
			for i := range 5 {
				c.Add(clustertest.Gang{Name: fmt.Sprintf("first-%d", i), Workers: 1, Missing: 1, NoGroup: true, Age: 24 * time.Hour, Job: func(job map[string]any) {
					job["status"] = map[string]any{"startTime": "2026-11-20T12:00:00Z", "conditions": []any{map[string]any{"type": "Succeeded", "status": "True", "lastTransitionTime": "2026-11-20T13:30:00Z"}}}
				}})
			}
			return c
		}(), "team/first-9 (ahead) ends: 16:00, " + a + ", then median of 5 earlier runs of first"},
		"the first leaves its workers": {behind(ends(30*time.Minute), func(g *clustertest.Gang) { g.Kind = "MPIJob"; runsFor(time.Hour)(g) }), "no wait"},
		"the first can never start":    {behind(unlimited, func(g *clustertest.Gang) { g.GPUs = 16 }), "no wait"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := eta(t, tt.cluster); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A gang that starts alongside the one before it waits for what that waits for, no longer.
func TestWaitAlongsideOthers(t *testing.T) {
	c := behind(ends(30*time.Minute), runsFor(time.Hour))
	c.Node("n3", 8)
	const want = "research/a or team/first (ahead) ends: 14:30, activeDeadlineSeconds of TFJob research/a"
	if got := eta(t, c); got != want {
		t.Errorf("got %s", got)
	}
}
