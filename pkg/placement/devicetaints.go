package placement

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// TaintedSlices returns ResourceSlices whose devices have the taints that DeviceTaintRules give them, as kube-scheduler sees them; the published ones themselves
// where no rule applies.
func TaintedSlices(published []*resourceapi.ResourceSlice, rules []*resourceapi.DeviceTaintRule) []*resourceapi.ResourceSlice {
	out, copied := published, false
	for i, s := range published {
		tainted := s
		for _, r := range rules {
			for _, at := range taintedBy(r, s) {
				if tainted == s {
					tainted = s.DeepCopy()
				}
				tainted.Spec.Devices[at].Taints = append(tainted.Spec.Devices[at].Taints, r.Spec.Taint)
			}
		}
		if tainted == s {
			continue
		}
		if !copied {
			out, copied = append([]*resourceapi.ResourceSlice(nil), published...), true
		}
		out[i] = tainted
	}
	return out
}

// taintedBy are the positions of the devices of a slice that a rule taints. A rule without a selector taints none.
func taintedBy(r *resourceapi.DeviceTaintRule, s *resourceapi.ResourceSlice) (devices []int) {
	of := r.Spec.DeviceSelector
	if of == nil || ptr.Deref(of.Driver, s.Spec.Driver) != s.Spec.Driver || ptr.Deref(of.Pool, s.Spec.Pool.Name) != s.Spec.Pool.Name {
		return nil
	}
	for i, d := range s.Spec.Devices {
		if ptr.Deref(of.Device, d.Name) == d.Name {
			devices = append(devices, i)
		}
	}
	return devices
}

// WithheldByRules are the DeviceTaintRules that keep pods off devices, each with what it does on which node, or in which pool where devices are of several nodes.
func WithheldByRules(published []*resourceapi.ResourceSlice, rules []*resourceapi.DeviceTaintRule) (withholding []*resourceapi.DeviceTaintRule, problems []DeviceProblem) {
	for _, r := range rules {
		if !withholds(r.Spec.Taint) {
			continue
		}
		tainted, order := map[string]int{}, []string(nil)
		for _, s := range published {
			if n := len(taintedBy(r, s)); n > 0 {
				where := ptr.Deref(s.Spec.NodeName, s.Spec.Pool.Name)
				if tainted[where] == 0 {
					order = append(order, where)
				}
				tainted[where] += n
			}
		}
		for _, where := range order {
			what := "1 device"
			if n := tainted[where]; n > 1 {
				what = fmt.Sprintf("%d devices", n)
			}
			problems = append(problems, DeviceProblem{where, fmt.Sprintf("DeviceTaintRule %s gives %s of %s taint %s", r.Name, what, where, describeTaint(r.Spec.Taint)), r.Name})
		}
		if len(order) > 0 {
			withholding = append(withholding, r)
		}
	}
	return withholding, problems
}
