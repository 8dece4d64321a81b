package hostile

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/gang"
)

// A pod may request as many resources as fit into an object. The cluster has more nodes than those of the fuzzed targets: what was kept
// of each of them took all memory, and the room was measured for each resource while nothing else was scheduled.
func TestManyResources(t *testing.T) {
	for name, spec := range map[string]func(*corev1.PodSpec){
		"that no node has": requestResources("1"),
		"of none, where no node may be used": func(s *corev1.PodSpec) {
			requestResources("0")(s)
			s.NodeSelector = map[string]string{"no": "node"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := newTarget(format{kind: "Job", dialect: gang.Labels, nodes: 300, spec: spec})
			if err != nil {
				t.Fatal(err)
			}
			in, ok := made.changed(nil, "")
			if !ok {
				t.Fatal("no API server has such a pod")
			}
			made.feed(t, in, 0)
		})
	}
}

// requestResources has the pods request 10,000 resources, and nothing else. The API server makes the requests of the limits.
func requestResources(amount string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		list := corev1.ResourceList{}
		for i := range 10_000 {
			list[corev1.ResourceName(fmt.Sprintf("a/r%05d", i))] = resource.MustParse(amount)
		}
		s.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
}
