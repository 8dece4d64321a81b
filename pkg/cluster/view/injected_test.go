package view_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// What all pods of a role have and their template has not is put into those that are made again; what single pods have is not, nor what a job required before it was changed.
func TestInjected(t *testing.T) {
	gold := corev1.NodeSelectorRequirement{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"gold"}}
	requires := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	term := func(all ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: all}
	}
	zone := corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}
	sidecar := corev1.Container{Name: "istio-proxy", Resources: corev1.ResourceRequirements{Requests: clustertest.List("cpu", "8")}}
	selects := func(i int, p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "gold"} }
	generation := func(job map[string]any) { job["metadata"].(map[string]any)["generation"] = int64(2) }
	for name, test := range map[string]struct {
		gang  clustertest.Gang
		build func(c *clustertest.Cluster)
		check func(p corev1.PodSpec) bool
	}{
		"a selector": {clustertest.Gang{Pod: selects}, nil, func(p corev1.PodSpec) bool { return p.NodeSelector["pool"] == "gold" }},
		"a selector of one pod": {clustertest.Gang{Pod: func(i int, p *corev1.Pod) {
			if i == 0 {
				selects(i, p)
			}
		}}, nil, func(p corev1.PodSpec) bool { return len(p.NodeSelector) == 0 }},
		"a node": {clustertest.Gang{Pod: func(i int, p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1"} }}, nil,
			func(p corev1.PodSpec) bool { return len(p.NodeSelector) == 0 }},
		"a selector that the job had":       {clustertest.Gang{Pod: selects, Job: generation}, nil, func(p corev1.PodSpec) bool { return len(p.NodeSelector) == 0 }},
		"another selector than the job has": {clustertest.Gang{Spec: func(p *corev1.PodSpec) { p.NodeSelector = map[string]string{"zone": "a"} }, Pod: selects}, nil, func(p corev1.PodSpec) bool { return len(p.NodeSelector) == 1 && p.NodeSelector["zone"] == "a" }},
		"a selector of its namespace": {clustertest.Gang{Pod: selects, Job: generation}, func(c *clustertest.Cluster) {
			c.S.Namespaces[0].Annotations = map[string]string{"scheduler.alpha.kubernetes.io/node-selector": "pool=gold"}
		}, func(p corev1.PodSpec) bool { return p.NodeSelector["pool"] == "gold" }},
		"an affinity": {clustertest.Gang{Pod: func(i int, p *corev1.Pod) { p.Spec.Affinity = requires(term(gold)) }}, nil, func(p corev1.PodSpec) bool {
			return p.Affinity != nil && len(p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) == 1
		}},
		"an affinity in each term": {clustertest.Gang{Spec: func(p *corev1.PodSpec) { p.Affinity = requires(term(zone), term()) }, Pod: func(i int, p *corev1.Pod) {
			p.Spec.Affinity = requires(term(zone, gold), term(gold))
		}}, nil, func(p corev1.PodSpec) bool {
			terms := p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			return len(terms) == 2 && len(terms[0].MatchExpressions) == 2 && len(terms[1].MatchExpressions) == 1
		}},
		"a container, and a toleration": {clustertest.Gang{Pod: func(i int, p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, sidecar)
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "gold", Operator: corev1.TolerationOpExists}, corev1.Toleration{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute})
		}}, nil, func(p corev1.PodSpec) bool { return len(p.Containers) == 2 && len(p.Tolerations) == 1 }},
		"a resource": {clustertest.Gang{Pod: func(i int, p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = p.Spec.Containers[0].Resources.Requests.DeepCopy()
			p.Spec.Containers[0].Resources.Requests["rdma/hca"] = clustertest.List("rdma/hca", "1")["rdma/hca"]
		}}, nil, func(p corev1.PodSpec) bool {
			q := p.Containers[0].Resources.Requests["rdma/hca"]
			return q.Value() == 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			test.gang.Name, test.gang.Workers, test.gang.GPUs = "gang", 2, 8
			c := clustertest.New().Nodes(2, 8)
			if test.build != nil {
				test.build(c)
			}
			w := view.New(c.Add(test.gang).Done())
			job, err := w.Find(view.Query{Namespace: "team", Name: "gang"})
			if err != nil {
				t.Fatal(err)
			}
			g := w.Gang(job)
			if got := w.Virtual(g, gang.Member{Role: "Worker"}).Spec; !test.check(got) {
				t.Errorf("got %+v", got)
			}
			if template := g.RoleByName("Worker").Template.Spec; len(template.Containers) != 1 || template.NodeSelector["pool"] != "" || len(template.Tolerations) > 0 {
				t.Errorf("the template was changed: %+v", template)
			}
		})
	}
}

// Without pods nothing shows what is injected.
func TestInjectedOfNoPods(t *testing.T) {
	w := view.New(clustertest.New().Nodes(1, 8).Add(clustertest.Gang{Name: "gang", Workers: 2, Missing: 2}).Done())
	job, err := w.Find(view.Query{Namespace: "team", Name: "gang"})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.Injected(w.Gang(job), "Worker"); got != nil {
		t.Errorf("got %+v", got)
	}
}
