package placement

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodename"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
)

// upstream are the scheduler's own plugins, each with the constraints that stand for its verdict.
func upstream(t *testing.T, c *Cluster) map[string]filter {
	_, fts := c.store.get(c.objects)
	ctx, h := context.Background(), c.handle()
	fitArgs := &config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{
		Type: config.LeastAllocated, Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}},
	}}
	fts.EnableDRAExtendedResource = false // needs a DRA manager; no test cluster has device classes
	out := map[string]filter{}
	add := func(names string, plugin any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		out[names] = plugin.(filter)
	}
	p, err := nodename.New(ctx, nil, h, fts)
	add("nodeName", p, err)
	p, err = nodeaffinity.New(ctx, &config.NodeAffinityArgs{}, h, fts)
	add("nodeSelector nodeAffinity", p, err)
	p, err = nodeports.New(ctx, nil, h, fts)
	add("hostPort", p, err)
	p, err = noderesources.NewFit(ctx, fitArgs, h, fts)
	add("resource: pods", p, err)
	p, err = interpodaffinity.New(ctx, &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, h, fts)
	add("podAffinity podAntiAffinity", p, err)
	p, err = podtopologyspread.New(ctx, &config.PodTopologySpreadArgs{DefaultingType: config.SystemDefaulting}, h, fts)
	add("topologySpread", p, err)
	p, err = nodeunschedulable.New(ctx, nil, h, fts)
	add("unschedulable", p, err)
	p, err = tainttoleration.New(ctx, nil, h, fts)
	add("taints", p, err)
	return out
}

func TestMatrixAgreesWithUpstreamPlugins(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := randomInterPod(r)
		for _, n := range w.objects.Nodes {
			decorate(r, n)
		}
		c := NewCluster(w.objects)
		plugins := upstream(t, c)
		for _, role := range w.gang.Roles {
			pod := randomPod(r, role.Pod)
			m := c.Matrix(pod)
			for names, plugin := range plugins {
				check := c.filterFor(plugin, pod)
				for at, n := range c.nodes {
					reason := ""
					if check != nil {
						reason = check(n)
					}
					if got := judged(m.Rows[at], names); got != (reason != "") && names != "unschedulable" && names != "taints" {
						t.Fatalf("seed %d, node %s, %s: plugin reports %q, matrix %+v\n%s", seed, n.obj.Name, names, reason, m.Rows[at].Violations, describe(w))
					}
					if names == "resource: pods" && !slices.Equal(shortages(m.Rows[at]), reasons(reason)) {
						t.Fatalf("seed %d: shortages %v, plugin %q", seed, m.Rows[at].Violations, reason)
					}
				}
			}
			// Cordon, NotReady and Taint split what two plugins report together.
			cordon, taints := c.filterFor(plugins["unschedulable"], pod), c.filterFor(plugins["taints"], pod)
			for at, n := range c.nodes {
				want := cordon(n) != "" || taints(n) != ""
				if got := judged(m.Rows[at], "cordon notReady taint"); got != want {
					t.Fatalf("seed %d: matrix %+v, plugins reject: %t, taints %v", seed, m.Rows[at].Violations, want, n.obj.Spec.Taints)
				}
			}
		}
	}
}

func judged(r Row, names string) bool {
	return slices.ContainsFunc(r.Violations, func(v Violation) bool {
		return slices.ContainsFunc(strings.Fields(names), func(w string) bool {
			return string(v.Constraint) == w || w == "resource:" && strings.HasPrefix(string(v.Constraint), w)
		})
	})
}

func shortages(r Row) []string {
	out := []string{}
	for _, v := range r.Violations {
		if name, ok := v.Constraint.ResourceName(); ok {
			out = append(out, string(name))
		}
	}
	slices.Sort(out)
	return out
}

func reasons(message string) []string {
	out := []string{}
	for part := range strings.SplitSeq(message, ", ") {
		if name, ok := strings.CutPrefix(part, "Insufficient "); ok {
			out = append(out, name)
		} else if part == "Too many pods" {
			out = append(out, "pods")
		}
	}
	slices.Sort(out)
	return out
}

// decorate gives a node more of what the matrix looks at.
func decorate(r *rand.Rand, n *corev1.Node) {
	for range r.IntN(3) {
		key := []string{"dedicated", corev1.TaintNodeUnschedulable, corev1.TaintNodeNotReady, corev1.TaintNodeMemoryPressure, "x.io/y"}[r.IntN(5)]
		effect := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule}[r.IntN(3)]
		taint(key, fmt.Sprint("v", r.IntN(2)), effect)(n)
	}
	n.Spec.Unschedulable = r.IntN(5) == 0
	if r.IntN(2) == 0 {
		n.Status.Allocatable[gpu] = amounts("gpu", r.IntN(4))[gpu]
		n.Status.Allocatable["example.com/nic"] = amounts("gpu", r.IntN(3))[gpu]
	}
	label("gen", fmt.Sprint(r.IntN(4)))(n)
}

// randomPod gives a pod more of what the matrix looks at.
func randomPod(r *rand.Rand, like *corev1.Pod) *corev1.Pod {
	p := like.DeepCopy()
	if r.IntN(3) == 0 {
		selecting("zone", fmt.Sprint("z", r.IntN(3)))(p)
	}
	if r.IntN(3) == 0 {
		op := []corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpExists}[r.IntN(4)]
		e := corev1.NodeSelectorRequirement{Key: "gen", Operator: op}
		if op != corev1.NodeSelectorOpExists {
			e.Values = []string{fmt.Sprint(r.IntN(4))}
		}
		affinity(p).NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{e}}},
		}}
	}
	for range r.IntN(4) {
		toleration := corev1.Toleration{Operator: corev1.TolerationOpExists}
		toleration.Key = []string{"", "dedicated", corev1.TaintNodeUnschedulable, corev1.TaintNodeNotReady, "x.io/y"}[r.IntN(5)]
		toleration.Effect = []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}[r.IntN(3)]
		if toleration.Key != "" && r.IntN(2) == 0 {
			toleration.Operator, toleration.Value = corev1.TolerationOpEqual, "v0"
		}
		p.Spec.Tolerations = append(p.Spec.Tolerations, toleration)
	}
	requests := p.Spec.Containers[0].Resources.Requests
	for _, name := range []corev1.ResourceName{gpu, "example.com/nic", "example.com/none"} {
		if r.IntN(4) == 0 {
			requests[name] = amounts("gpu", r.IntN(3))[gpu]
		}
	}
	if r.IntN(3) == 0 {
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = []corev1.Container{{Name: "side", RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: amounts("cpu", 1)}},
			{Name: "init", Resources: corev1.ResourceRequirements{Requests: amounts("cpu", r.IntN(4))}}}
	}
	if r.IntN(5) == 0 {
		p.Spec.Overhead = amounts("cpu", "250m", "memory", "1Mi")
	}
	if r.IntN(12) == 0 {
		p.Spec.NodeName = "n0"
	}
	return p
}
