package placement

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// DeviceProblem is why devices that a driver publishes go to no pod, or only to those that tolerate it.
type DeviceProblem struct {
	// Where is the node of the devices, or their pool if they are of several.
	Where string
	// Detail is a sentence: device gpu-3 of n2 has taint KEY:NoSchedule.
	Detail string
	// Rule is the DeviceTaintRule that does it; empty for what a driver publishes.
	Rule string
}

// RepairedSlices returns ResourceSlices without the taints that keep pods off devices, of pools that are complete with the slices that there are; and what was
// wrong. A driver that misses a slice of a pool has not published all of it, and kube-scheduler gives nothing of it.
func RepairedSlices(published []*resourceapi.ResourceSlice) (repaired []*resourceapi.ResourceSlice, problems []DeviceProblem) {
	type pool struct{ driver, name string }
	latest, there := map[pool]int64{}, map[pool]int64{}
	for _, s := range published {
		p := pool{s.Spec.Driver, s.Spec.Pool.Name}
		latest[p] = max(latest[p], s.Spec.Pool.Generation)
	}
	for _, s := range published {
		if p := (pool{s.Spec.Driver, s.Spec.Pool.Name}); s.Spec.Pool.Generation == latest[p] {
			there[p]++
		}
	}
	repaired, missing := slices.Clone(published), map[pool]bool{}
	for i, s := range published {
		p := pool{s.Spec.Driver, s.Spec.Pool.Name}
		if s.Spec.Pool.Generation != latest[p] {
			continue
		}
		where := ptr.Deref(s.Spec.NodeName, s.Spec.Pool.Name)
		if there[p] < s.Spec.Pool.ResourceSliceCount {
			s = s.DeepCopy()
			s.Spec.Pool.ResourceSliceCount = there[p]
			if !missing[p] {
				problems = append(problems, DeviceProblem{Where: where, Detail: fmt.Sprintf("driver %s has published %d of %d slices of pool %s", p.driver, there[p], published[i].Spec.Pool.ResourceSliceCount, p.name)})
			}
			missing[p] = true
		}
		repaired[i] = s
		if !slices.ContainsFunc(s.Spec.Devices, func(d resourceapi.Device) bool { return slices.ContainsFunc(d.Taints, withholds) }) {
			continue
		}
		s = s.DeepCopy()
		for j := range s.Spec.Devices {
			d := &s.Spec.Devices[j]
			for _, t := range d.Taints {
				if withholds(t) {
					problems = append(problems, DeviceProblem{Where: where, Detail: fmt.Sprintf("device %s of %s has taint %s", d.Name, where, describeTaint(t))})
				}
			}
			d.Taints = slices.DeleteFunc(d.Taints, withholds)
		}
		repaired[i] = s
	}
	return repaired, problems
}

// withholds reports whether a taint keeps pods off a device that do not tolerate it.
func withholds(t resourceapi.DeviceTaint) bool {
	return t.Effect == resourceapi.DeviceTaintEffectNoSchedule || t.Effect == resourceapi.DeviceTaintEffectNoExecute
}

func describeTaint(t resourceapi.DeviceTaint) string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}

// DevicesRepaired returns the cluster with [RepairedSlices]; c itself if nothing is wrong.
func (c *Cluster) DevicesRepaired() *Cluster {
	repaired, problems := RepairedSlices(c.objects.ResourceSlices)
	if len(problems) == 0 {
		return c
	}
	return c.WithSlices(repaired)
}

// WithMoreSlices returns the cluster with further ResourceSlices.
func (c *Cluster) WithMoreSlices(more []*resourceapi.ResourceSlice) *Cluster {
	return c.WithSlices(slices.Concat(c.objects.ResourceSlices, more))
}

// WithSlices returns the cluster with other ResourceSlices.
func (c *Cluster) WithSlices(published []*resourceapi.ResourceSlice) *Cluster {
	out, objects := c.copy(), *c.objects
	objects.ResourceSlices = published
	out.objects = &objects
	return out
}
