package placement

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestTaintedSlices(t *testing.T) {
	slice := func(node string, devices ...string) *resourceapi.ResourceSlice {
		s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}}
		s.Spec.Driver, s.Spec.NodeName, s.Spec.Pool.Name = "gpu.example.com", &node, node
		for _, d := range devices {
			s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{Name: d})
		}
		return s
	}
	published := []*resourceapi.ResourceSlice{slice("n1", "gpu-0", "gpu-1"), slice("n2", "gpu-0", "gpu-1")}
	rule := func(effect resourceapi.DeviceTaintEffect, of *resourceapi.DeviceTaintSelector) *resourceapi.DeviceTaintRule {
		r := &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "sick"}}
		r.Spec.DeviceSelector, r.Spec.Taint = of, resourceapi.DeviceTaint{Key: "example.com/sick", Effect: effect}
		return r
	}
	for _, test := range []struct {
		name    string
		rule    *resourceapi.DeviceTaintRule
		tainted int
		problem string
	}{
		{"all", rule("NoSchedule", &resourceapi.DeviceTaintSelector{}), 4, "DeviceTaintRule sick gives 2 devices of n1 taint example.com/sick:NoSchedule"},
		{"none", rule("NoSchedule", nil), 0, ""},
		{"of a pool", rule("NoExecute", &resourceapi.DeviceTaintSelector{Pool: ptr.To("n2")}), 2, "DeviceTaintRule sick gives 2 devices of n2 taint example.com/sick:NoExecute"},
		{"one", rule("NoSchedule", &resourceapi.DeviceTaintSelector{Driver: ptr.To("gpu.example.com"), Pool: ptr.To("n2"), Device: ptr.To("gpu-1")}), 1,
			"DeviceTaintRule sick gives 1 device of n2 taint example.com/sick:NoSchedule"},
		{"of another driver", rule("NoSchedule", &resourceapi.DeviceTaintSelector{Driver: ptr.To("nic.example.com")}), 0, ""},
		{"without an effect", rule("None", &resourceapi.DeviceTaintSelector{Pool: ptr.To("n2")}), 2, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules, tainted := []*resourceapi.DeviceTaintRule{test.rule}, 0
			for i, s := range TaintedSlices(published, rules) {
				for _, d := range s.Spec.Devices {
					tainted += len(d.Taints)
				}
				for _, d := range published[i].Spec.Devices {
					if len(d.Taints) > 0 {
						t.Error("what was published has changed")
					}
				}
			}
			problem := ""
			_, problems := WithheldByRules(published, rules)
			if len(problems) > 0 {
				problem = problems[0].Detail
			}
			if tainted != test.tainted || problem != test.problem {
				t.Errorf("%d devices are tainted: %q", tainted, problem)
			}
		})
	}
}
