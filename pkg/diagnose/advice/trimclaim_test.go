package advice_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/advice"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// claimants is two nodes with so many devices, and a gang of two whose members claim so many by a template.
func claimants(c *clustertest.Cluster, count int64, devices ...int) {
	c.Nodes(2, 0)
	c.Put(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	for i, n := range c.S.Nodes {
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: &n.Name, Pool: resourcev1.ResourcePool{Name: n.Name, ResourceSliceCount: 1}}}
		for d := range devices[i] {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("d", d)})
		}
		c.Put(slice)
	}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gpus"}}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}}}
	c.Put(template)
	c.Add(gangOf(2, 0, spec(func(p *corev1.PodSpec) {
		p.ResourceClaims = []corev1.PodResourceClaim{{Name: "r", ResourceClaimTemplateName: &template.Name}}
	})))
}

// made makes the claims of the members as the template has them.
func made(c *clustertest.Cluster) {
	for _, p := range c.S.Pods {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: p.Name + "-r"}, Spec: c.S.ResourceClaimTemplates[0].Spec.Spec}
		c.Put(claim)
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "r", ResourceClaimName: &claim.Name}}
	}
}

func TestTrimClaims(t *testing.T) {
	runCases(t, answer.Trim, []testCase{
		{"the most that both nodes have", func(c *clustertest.Cluster) { claimants(c, 8, 8, 7) }, []string{"Worker.devices=7"}},
		{"with claims that are made", func(c *clustertest.Cluster) { claimants(c, 8, 8, 7); made(c) }, []string{"Worker.devices=7"}},
		{"as many on one node", func(c *clustertest.Cluster) { claimants(c, 8, 8, 0) }, []string{"Worker.devices=4"}},
		{"one at least", func(c *clustertest.Cluster) { claimants(c, 8, 1, 0) }, nil},
		{"of no other devices", func(c *clustertest.Cluster) {
			claimants(c, 1, 8, 8)
			c.S.ResourceSlices = nil
		}, nil},
	})
	c := clustertest.New()
	claimants(c, 8, 8, 7)
	_, found := look(t, c, advice.Options{})
	for _, a := range found.Actions {
		if a.Kind == answer.Trim && (a.Text != "7 devices of class gpu for each worker instead of 8" || !strings.Contains(a.How, "a ResourceClaimTemplate like gpus in which request r has count 7") || a.Devices != 14) {
			t.Errorf("%q, %q, %d in all", a.Text, a.How, a.Devices)
		}
	}
}
