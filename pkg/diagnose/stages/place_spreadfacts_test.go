package stages_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/stages"
)

// A spread over nodes counts as many domains as there are: a published answer has the fullest of them.
func TestSpreadFacts(t *testing.T) {
	const nodes, full = answer.PublishedNodes + 10, "n30"
	got := diagnose(t, func(c *clustertest.Cluster) {
		c.Nodes(nodes, 8)
		for _, n := range c.S.Nodes[:nodes-1] {
			c.Runs("job-"+n.Name, 8, n.Name)
		}
		mates := other("mates", 0, full)
		mates.Namespace, mates.Pod = "team", func(_ int, p *corev1.Pod) { p.Labels["app"] = "web" }
		c.Add(mates).Add(gangOf(1, 8, spec(func(p *corev1.PodSpec) {
			p.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
		}), pods(func(_ int, p *corev1.Pod) { p.Labels["app"] = "web" })))
	}, stages.Options{})
	if got.Primary == nil || got.Primary.Code != answer.TopologySpread {
		t.Fatalf("got %s", everything(got))
	}
	counted, _ := got.Primary.Facts["counted"].(map[string]int)
	if len(counted) != answer.PublishedNodes || counted[full] != 1 || got.Primary.Facts["domainCount"] != nodes {
		t.Errorf("got %v of %v domains", counted, got.Primary.Facts["domainCount"])
	}
}
