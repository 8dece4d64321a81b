package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// notModelled names what a pod asks for and this package does not evaluate.
func (c *Cluster) notModelled(pod *corev1.Pod) []string {
	var out []string
	for _, k := range c.claims(pod) {
		if k.class == nil || k.problem != "" {
			continue
		}
		driver := find(c.objects.CSIDrivers, "", k.class.Provisioner)
		if driver != nil && ptr.Deref(driver.Spec.StorageCapacity, false) {
			out = append(out, fmt.Sprintf("storage capacity of CSI driver %s for claim %s", driver.Name, k.pvc.Name))
		}
	}
	for name, amount := range chargedTo(pod).ScalarResources {
		for _, class := range c.objects.DeviceClasses {
			backed := ptr.Deref(class.Spec.ExtendedResourceName, "") == string(name) || "deviceclass.resource.kubernetes.io/"+class.Name == string(name)
			if _, offered := c.names.index[name]; backed && amount > 0 && !offered {
				out = append(out, fmt.Sprintf("resource %s from DeviceClass %s", name, class.Name))
			}
		}
	}
	out = append(out, c.claimsNotModelled(pod)...)
	slices.Sort(out)
	return slices.Compact(out)
}

// note names what members of different roles may do to each other and this package does not evaluate.
func (t *task) note() {
	withVolumes := 0
	for i := range t.classes {
		for _, note := range t.classes[i].rules.unmodelled {
			t.notes[note] = true
		}
		if len(t.c.claims(t.classes[i].rules.pod)) > 0 {
			withVolumes++
		}
	}
	limited := slices.ContainsFunc(t.c.objects.CSINodes, limitsVolumes)
	if withVolumes > 1 && limited {
		t.notes["volume limits for members of different roles on one node"] = true
	}
	for i := range t.classes {
		if k := &t.classes[i]; limited && k.count > 1 && hasEphemeral(k.rules.pod) {
			t.notes["volume limits for ephemeral volumes of several members on one node"] = true
		}
	}
}

func hasEphemeral(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil })
}
