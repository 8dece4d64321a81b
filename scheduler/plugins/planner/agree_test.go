package planner

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/diagnose"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// The scheduler and why-pending explain the same gang with the same numbers.
func TestAgreesWithDiagnosis(t *testing.T) {
	rdma := func(amount string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests["rdma/hca"] = resource.MustParse(amount) }
	}
	gang := func(workers int, gpus int64) clustertest.Gang {
		return clustertest.Gang{Namespace: "default", Name: "g", Workers: workers, GPUs: gpus}
	}
	for name, c := range map[string]struct {
		build func(*clustertest.Cluster)
		gang  clustertest.Gang
		code  answer.Code
		facts string
	}{
		"busy": {
			build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Runs("a", 8, "n1") }, gang: gang(2, 8),
			code: answer.NodesBusy, facts: "worker: 2 x 8 nvidia.com/gpu, 16 requested, 8 of 16 free, at most 8",
		},
		"fragmented": {
			build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Runs("a", 4, "n1", "n2") }, gang: gang(1, 8),
			code: answer.Fragmented, facts: "worker: 1 x 8 nvidia.com/gpu, 8 requested, 8 of 16 free, at most 4",
		},
		"more members than the gang needs": {
			build: func(c *clustertest.Cluster) { c.Nodes(2, 8).Runs("a", 4, "n1", "n2") },
			gang:  func() clustertest.Gang { g := gang(4, 8); g.Min = 2; return g }(),
			code:  answer.NodesBusy, facts: "worker: 2 x 8 nvidia.com/gpu, 16 requested, 8 of 16 free, at most 4",
		},
		"cpu": {
			build: func(c *clustertest.Cluster) {
				c.Nodes(2, 8).Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 2, CPU: "64", Nodes: []string{"n1", "n2"}})
			},
			gang: func() clustertest.Gang { g := gang(2, 0); g.CPU = "40"; return g }(),
			code: answer.InsufficientCPU, facts: "worker: 2 x 40000 cpu, 80000 requested, 64000 of 192000 free, at most 32000",
		},
		"devices and another one, of which there is too little": {
			build: func(c *clustertest.Cluster) {
				for _, n := range []*corev1.Node{c.Node("n1", 8), c.Node("n2", 8)} {
					n.Status.Allocatable["rdma/hca"] = resource.MustParse("4")
					n.Status.Capacity["rdma/hca"] = resource.MustParse("4")
				}
				c.Add(clustertest.Gang{Namespace: "research", Name: "a", Workers: 2, Nodes: []string{"n1", "n2"}, Spec: rdma("1")})
			},
			gang: func() clustertest.Gang { g := gang(2, 4); g.Spec = rdma("4"); return g }(),
			code: answer.NodesBusy, facts: "worker: 2 x 4 rdma/hca, 8 requested, 6 of 8 free, at most 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clustertest.New()
			c.build(cluster)
			cluster.Add(c.gang)
			s := cluster.Done()

			why, err := diagnose.Explain(t.Context(), s, diagnose.Query{Namespace: "default", Name: "g"}, diagnose.Options{NoAdvice: true})
			if err != nil {
				t.Fatal(err)
			}
			if why.Primary == nil {
				t.Fatalf("verdict %s without a finding", why.Verdict)
			}
			if got := numbers(why.Primary.Facts); got != c.facts || why.Primary.Code != c.code {
				t.Errorf("diagnosis: %s %s (%s)", why.Primary.Code, got, why.Primary.Message)
			}

			r := newRig(t)
			for _, n := range s.Nodes {
				r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("nodes"), n, ""))
			}
			var members []*corev1.Pod
			used := 0
			for _, p := range s.Pods {
				if p.Spec.NodeName != "" {
					r.create(p)
					used++
					continue
				}
				p = p.DeepCopy()
				group := "g"
				p.Spec.SchedulerName, p.Spec.SchedulingGroup = ours, &corev1.PodSchedulingGroup{PodGroupName: &group}
				members = append(members, p)
			}
			poll.Until(r, "the engine knows the cluster", func() bool {
				pods, err := r.engine.Cache.PodCount()
				return err == nil && pods == used && r.engine.Cache.NodeCount() == len(s.Nodes)
			})
			minimum := len(members)
			if c.gang.Min > 0 {
				minimum = c.gang.Min
			}
			r.gang("g", int32(minimum))
			r.create(members...)
			reason := r.parked("g")
			if got := numbers(reason.Finding.Facts); got != c.facts || reason.Finding.Code != c.code {
				t.Errorf("scheduler: %s %s (%s)", reason.Finding.Code, got, reason.Finding.Message)
			}
		})
	}
}

// numbers are the facts about the room for the role that is hardest to place.
func numbers(facts map[string]any) string {
	return fmt.Sprintf("%s: %v x %v %v, %v requested, %v of %v free, at most %v", strings.ToLower(fmt.Sprint(facts["role"])), facts["members"], facts["perMember"], facts["resource"],
		facts["requested"], facts["free"], facts["total"], facts["largestHole"])
}
