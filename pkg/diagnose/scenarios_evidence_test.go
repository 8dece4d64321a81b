package diagnose

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/koordinator"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

// templated puts an annotation on the template of the workers of a TFJob.
func templated(key, value string) func(map[string]any) {
	return set(map[string]any{key: value}, "spec", "tfReplicaSpecs", "Worker", "template", "metadata", "annotations")
}

// inSlice puts every other pod into the slices a and b.
func inSlice(i int, p *corev1.Pod) { p.Labels["slice"] = string(rune('a' + i%2)) }

func evidenceScenarios() []scenario {
	advice := []answer.ActionKind{answer.Wait, answer.Fewer, answer.AddNodes, answer.Reshape}
	inKueue := func(change func(map[string]any)) func(*clustertest.Gang) {
		return func(g *clustertest.Gang) {
			kueued(g)
			queued := g.Job
			g.Job = func(job map[string]any) { queued(job); change(job) }
		}
	}
	return []scenario{
		{name: "Kueue: a topology that is required", code: answer.SelectorNoMatch, exit: 4, wantText: []string{"no node has the label example.com/rack", "the annotation kueue.x-k8s.io/podset-required-topology of its pods"}, notText: []string{"not modelled", "heuristic"}, build: func(c *clustertest.Cluster) {
			kueue(c, "32", "BestEffortFIFO")
			c.Nodes(2, 8).Add(with(waiting(2, 8), inKueue(templated("kueue.x-k8s.io/podset-required-topology", "example.com/rack"))))
		}},
		{name: "Kueue: a topology that is required of slices", code: answer.Fits, exit: 3, wantText: []string{"not modelled[^\n]*podset-slice-required-topology", "heuristic"}, build: func(c *clustertest.Cluster) {
			kueue(c, "32", "BestEffortFIFO")
			c.Nodes(2, 8).Add(with(waiting(2, 8), inKueue(templated("kueue.x-k8s.io/podset-slice-required-topology", "example.com/rack"))))
		}},
		{name: "Kueue: a topology that is preferred", code: answer.Fits, exit: 3, notText: []string{"not modelled", "heuristic"}, build: func(c *clustertest.Cluster) {
			kueue(c, "32", "BestEffortFIFO")
			c.Nodes(2, 8).Add(with(waiting(2, 8), inKueue(templated("kueue.x-k8s.io/podset-preferred-topology", "example.com/rack"))))
		}},
		{name: "Volcano: advice under a topology that no stage evaluates", code: answer.NodesBusy, exit: 3, never: advice, wantText: []string{"not verified"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(with(waiting(2, 8), inNetwork(map[string]any{"mode": "hard", "highestTierAllowed": int64(20)})))
		}},
		{name: "Volcano: below one switch there is room for a subgroup, and for the other below none", code: answer.TopologyFragmented, exit: 3,
			wantText: []string{"the members of each of 2 parts must share one HyperNode of tier 1 or lower, and there is room for what the gang needs of each alone, but not for all at once: s3 has room for 2, s1 for 1, s2 for 1", "places for the 2 members with slice=b by HyperNode of tier 1 or lower"},
			notText:  []string{"gangctl.dev/hypernode", "not evaluated", "not applied"}, build: func(c *clustertest.Cluster) {
				c.Queue("q", "Open", nil)
				c.Nodes(5, 8).Runs("a", 8, "n1").Add(with(waiting(4, 8), func(g *clustertest.Gang) {
					g.Volcano, g.Pod = "q", inSlice
					g.Group = set([]any{map[string]any{"name": "slices", "matchLabelKeys": []any{"slice"}, "networkTopology": map[string]any{"mode": "hard", "highestTierAllowed": int64(1)}}}, "spec", "subGroupPolicy")
				}))
				hyperNode(c, "s1", 1, "Node", "n1", "n2")
				hyperNode(c, "s2", 1, "Node", "n3")
				hyperNode(c, "s3", 1, "Node", "n4", "n5")
				hyperNode(c, "top", 2, "HyperNode", "s1", "s2", "s3")
			}},
		{name: "parts of a gang that fit into racks alone, and not at once", code: answer.TopologyFragmented, exit: 3,
			wantText: []string{"the members of each of 2 parts must share one value of rack, and there is room for what the gang needs of each alone, but not for all at once: r2 has room for 2, r1 for 1"}, build: func(c *clustertest.Cluster) {
				c.Nodes(6, 8).Runs("a", 8, "n1").Runs("b", 8, "n5").Add(with(waiting(4, 8), func(g *clustertest.Gang) {
					g.Pod = inSlice
					g.Group = set(`[{"by":["slice"],"required":"rack"}]`, "metadata", "annotations", gang.TopologyParts)
				}))
				label(c, "rack", "r1", "r1", "r2", "r2", "r3", "r3")
			}},
		{name: "parts of a gang by a label that no node has", code: answer.SelectorNoMatch, exit: 4, wantText: []string{"no node has the label rck", "did you mean the label rack"}, build: func(c *clustertest.Cluster) {
			c.Nodes(4, 8).Add(with(waiting(4, 8), func(g *clustertest.Gang) {
				g.Pod = inSlice
				g.Group = set(`[{"by":["slice"],"required":"rck"}]`, "metadata", "annotations", gang.TopologyParts)
			}))
			label(c, "rack", "r1", "r1", "r2", "r2")
		}},
		{name: "Volcano: below one switch there is room for one", code: answer.TopologyFragmented, exit: 3, wantText: []string{"all 2 members must share one HyperNode of tier 1 or lower: s1 has room for 1, s2 for 1", "HyperNode top would do", `"highestTierAllowed":2`},
			notText: []string{"gangctl.dev/hypernode", "not evaluated"}, build: func(c *clustertest.Cluster) {
				c.Queue("q", "Open", nil)
				c.Nodes(4, 8).Runs("a", 8, "n1").Runs("b", 8, "n3").Add(with(waiting(2, 8), inNetwork(map[string]any{"mode": "hard", "highestTierAllowed": int64(1)})))
				hyperNode(c, "s1", 1, "Node", "n1", "n2")
				hyperNode(c, "s2", 1, "Node", "n3", "n4")
				hyperNode(c, "top", 2, "HyperNode", "s1", "s2")
			}},
		{name: "Volcano: a switch has members that do not exist", code: answer.SelectorNoMatch, exit: 5, wantText: []string{"no node is in a HyperNode of tier 1 or lower, for the topology of worker: HyperNode s1 names node-1, node-2, which do not exist", "kubectl get hypernodes.topology.volcano.sh s1"},
			build: func(c *clustertest.Cluster) {
				c.Queue("q", "Open", nil)
				c.Nodes(2, 8).Add(with(waiting(2, 8), inNetwork(map[string]any{"mode": "hard", "highestTierAllowed": int64(1)})))
				hyperNode(c, "s1", 1, "Node", "node-1", "node-2")
			}},
		{name: "Volcano: what is below one switch may not be read", code: answer.Fits, exit: 3, wantText: []string{"hypernodes.topology.volcano.sh"}, notText: []string{"TOO_BIG", "cannot"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Add(with(with(waiting(2, 8), inNetwork(map[string]any{"mode": "hard", "highestTierAllowed": int64(1)})), func(g *clustertest.Gang) { g.Age = 5 * time.Second }))
			c.S.Denied = append(c.S.Denied, snapshot.Denial{Resource: "hypernodes.topology.volcano.sh"})
		}},
		{name: "a node selector by a label that only the network has", code: answer.SelectorNoMatch, exit: 4, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Spec = func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{networktopology.TierKey(1): "s1"} }
			}))
			hyperNode(c, "s1", 1, "Node", "n1", "n2")
		}},
		{name: "Koordinator: in one block there is room for one", code: answer.TopologyFragmented, exit: 3, wantText: []string{"all 2 members must share one domain of layer BlockLayer: b1 has room for 1, b2 for 1", "layer s1 would do|domain s1 would do", "MustGather"}, build: func(c *clustertest.Cluster) {
			c.Schedules("koord-scheduler")
			c.Nodes(4, 8).Runs("a", 8, "n1").Runs("b", 8, "n3").Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Dialect, g.Scheduler = "koordinator", "koord-scheduler"
				g.Group = set(`{"gatherStrategy":[{"layer":"BlockLayer","strategy":"MustGather"}]}`, "metadata", "annotations", koordinator.TopologyAnnotation)
			}))
			label(c, "block", "b1", "b1", "b2", "b2")
			label(c, "spine", "s1", "s1", "s1", "s1")
			c.Object(map[string]any{"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "ClusterNetworkTopology", "metadata": map[string]any{"name": "default"},
				"spec": map[string]any{"networkTopologySpec": []any{
					map[string]any{"topologyLayer": "SpineLayer", "labelKey": []any{"spine"}},
					map[string]any{"topologyLayer": "BlockLayer", "parentTopologyLayer": "SpineLayer", "labelKey": []any{"block"}},
				}}})
		}},
		{name: "Volcano: a topology that is preferred", code: answer.NodesBusy, exit: 3, offers: []answer.ActionKind{answer.Wait}, notText: []string{"not modelled", "not verified"}, build: func(c *clustertest.Cluster) {
			c.Queue("q", "Open", nil)
			c.Nodes(2, 8).Runs("a", 8, "n1", "n2").Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Volcano, g.Group = "q", set(map[string]any{"mode": "soft"}, "spec", "networkTopology")
			}))
		}},
		{name: "the group of Kubernetes has to stay in one rack", code: answer.TopologyFragmented, exit: 3, wantText: []string{"rack"}, build: func(c *clustertest.Cluster) {
			c.Schedules("default-scheduler").GangScheduler("")
			c.Nodes(4, 8).Runs("a", 8, "n1").Runs("b", 8, "n3").Add(with(waiting(2, 8), func(g *clustertest.Gang) {
				g.Dialect, g.Scheduler = "native", "default-scheduler"
				g.Group = set([]any{map[string]any{"key": "rack"}}, "spec", "schedulingConstraints", "topology")
			}))
			label(c, "rack", "r1", "r1", "r2", "r2")
		}},
		{name: "a refusal of the job's namesake before it", code: answer.Fits, exit: 3, notText: []string{"denied"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8).Add(with(with(waiting(2, 8), none), func(g *clustertest.Gang) { g.NoGroup, g.Age = true, 5*time.Second }))
			c.Event("TFJob", "team", "gang", "tfjob-controller", "FailedCreatePod", `Error creating: admission webhook "policy.example.com" denied the request: missing team label`, 30*time.Minute)
		}},
		{name: "Kueue's opinion of an earlier queue", code: answer.Fits, exit: 3, wantText: []string{"outdated"}, build: func(c *clustertest.Cluster) {
			kueue(c, "32", "BestEffortFIFO")
			q := c.S.Custom[kueueKind("ClusterQueue")][0]
			q.SetGeneration(3)
			condition := clustertest.Condition("Active", "False", "FlavorNotFound", "references missing flavor", time.Hour)
			condition["observedGeneration"] = int64(2)
			set([]any{condition}, "status", "conditions")(q.Object)
			c.Nodes(2, 8).Add(with(waiting(2, 8), kueued))
		}},
		{name: "a toleration that every pod gets", code: answer.NodeNotReady, exit: 5, notText: []string{"did you mean"}, build: func(c *clustertest.Cluster) {
			c.Nodes(2, 8)
			for _, n := range c.S.Nodes {
				n.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}, {Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}}
				n.Status.Conditions[0].Status = corev1.ConditionUnknown
			}
			seconds := int64(300)
			c.Add(with(waiting(2, 8), spec(func(p *corev1.PodSpec) {
				for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
					p.Tolerations = append(p.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
				}
			})))
		}},
	}
}

// What people pipe into why-pending is what kubectl and other tools print, one after the other.
func TestStreams(t *testing.T) {
	const (
		node = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}, "conditions": [{"type": "Ready", "status": "True"}]}}`
		job  = `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "team", "name": "gang", "uid": "j"}, "spec": {"parallelism": 1, "completions": 1, "template": {"spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "16"}}}]}}}}`
		pod  = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "team", "name": "gang-x", "creationTimestamp": "2026-11-21T14:00:00Z", "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "gang", "uid": "j", "controller": true}]}, "spec": {"containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": "16"}}}]}, "status": {"phase": "Pending"}}`
	)
	list := func(items ...string) string {
		return `{"apiVersion": "v1", "kind": "List", "items": [` + strings.Join(items, ", ") + "]}\n"
	}
	for _, tt := range []struct{ name, stream, note string }{
		{"JSON documents between dashes", node + "\n---\n" + job + "\n---\n" + pod + "\n", ""},
		{"what kubectl prints, twice", list(node) + list(job, pod), ""},
		{"JSON, and YAML after it", node + "\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n---\n" + job + "\n---\n" + pod, ""},
		{"an empty list among the others", list() + list(node) + list(job, pod), ""},
		{"values of a chart among the objects", "replicas: 3\nimage: {tag: v1}\n---\n" + node + "\n---\n" + job + "\n---\n" + pod, "document 1, line 1"},
		{"a refusal among the lists", `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "forbidden"}` + "\n" + list(node) + list(job, pod), "Status"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := snapshot.Read(strings.NewReader(tt.stream))
			if err != nil {
				t.Fatal(err)
			}
			a, err := Explain(context.Background(), s, Query{Namespace: "team", Name: "gang"}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			scenario{code: answer.TooBig, exit: 6, wantText: []string{"16", tt.note}}.check(t, a)
		})
	}
}

// Where the type of a job is absent the answer names who would handle it, and the command that puts it there.
func TestOperatorIsNamed(t *testing.T) {
	for _, tt := range []struct{ kind, operator string }{{"tfjob", "training-operator"}, {"pytorchjob", "training-operator"}, {"mpijob", "training-operator"}, {"", "training-operator"}} {
		t.Run("absent "+tt.kind, func(t *testing.T) {
			c := clustertest.New().Nodes(2, 8)
			c.S.Server.Resources = []string{"jobs.batch/v1"}
			a, err := Explain(context.Background(), c.Done(), Query{Kind: tt.kind, Namespace: "team", Name: "gang"}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			scenario{code: answer.CRDNotInstalled, exit: 5, wantText: []string{tt.operator, "gangctl install operator"}}.check(t, a)
		})
	}
	scenario{code: answer.OperatorMissing, exit: 5, wantText: []string{"training-operator", "gangctl install operator"}, build: func(c *clustertest.Cluster) {
		c.S.Deployments = c.S.Deployments[1:]
		c.Nodes(2, 8).Add(with(waiting(2, 8), func(g *clustertest.Gang) { g.Missing, g.NoGroup, g.Job = 2, true, set(map[string]any{}, "status") }))
	}}.play(t)
}

// inNetwork has a gang of Volcano be together in the network.
func inNetwork(rule map[string]any) func(*clustertest.Gang) {
	return func(g *clustertest.Gang) { g.Volcano, g.Group = "q", set(rule, "spec", "networkTopology") }
}

// hyperNode puts nodes, or other HyperNodes, into one.
func hyperNode(c *clustertest.Cluster, name string, tier int64, kind string, names ...string) {
	var members []any
	for _, member := range names {
		members = append(members, map[string]any{"type": kind, "selector": map[string]any{"exactMatch": map[string]any{"name": member}}})
	}
	c.Object(map[string]any{"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": map[string]any{"name": name}, "spec": map[string]any{"tier": tier, "members": members}})
}
