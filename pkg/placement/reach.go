package placement

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/storage/volume"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumerestrictions"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumezone"
)

// zones rejects nodes in another zone or region than a bound volume.
func (c *Cluster) zones(pod *corev1.Pod) check {
	claims := c.claims(pod)
	if len(claims) == 0 {
		return nil
	}
	var byLabel func(*node) string
	if c.usable(pod) == nil { // else the plugin rejects the pod for that
		_, features := c.store.get(c.objects)
		byLabel = c.asked(built(volumezone.New(context.Background(), nil, c.handle(), features)), pod)
	}
	return func(n *node) []Violation {
		for _, k := range claims {
			if k.pv != nil && zonal(k.pv) && volume.CheckNodeAffinity(k.pv, n.obj.Labels) != nil {
				return []Violation{{Constraint: VolumeZone, Detail: "claim " + k.pvc.Name + " is bound to volume " + k.pv.Name}}
			}
		}
		if byLabel != nil {
			if reason := byLabel(n); reason != "" {
				return []Violation{{Constraint: VolumeZone, Detail: reason}}
			}
		}
		return nil
	}
}

// zonal tells whether a volume's node affinity is only about zones and regions.
func zonal(pv *corev1.PersistentVolume) bool {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return false
	}
	found := false
	for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, e := range term.MatchExpressions {
			if !strings.HasSuffix(e.Key, "/zone") && !strings.HasSuffix(e.Key, "/region") {
				return false
			}
			found = true
		}
	}
	return found
}

// reached rejects nodes from which a bound volume cannot be reached, or for which an unbound one cannot be had.
func (c *Cluster) reached(pod *corev1.Pod) check {
	claims := c.claims(pod)
	if len(claims) == 0 {
		return c.disks(pod)
	}
	disks := c.disks(pod)
	return func(n *node) []Violation {
		taken := map[string]*corev1.PersistentVolume{}
		for _, k := range claims {
			reason := ""
			switch {
			case k.problem != "":
			case k.pv != nil:
				if !zonal(k.pv) && volume.CheckNodeAffinity(k.pv, n.obj.Labels) != nil {
					reason = "is bound to volume " + k.pv.Name
				}
			default:
				reason = c.provisionable(k, n.obj, taken)
			}
			if reason != "" {
				return []Violation{{Constraint: VolumeNode, Detail: "claim " + k.pvc.Name + " " + reason}}
			}
		}
		if disks != nil {
			return disks(n)
		}
		return nil
	}
}

// provisionable says why an unbound claim can get no volume on a node; empty if it can. taken are volumes that other claims of
// the pod would get.
func (c *Cluster) provisionable(k claim, n *corev1.Node, taken map[string]*corev1.PersistentVolume) string {
	selected, already := k.pvc.Annotations[volume.AnnSelectedNode]
	if already && selected != n.Name {
		return "is being provisioned for node " + selected
	}
	if !already {
		if pv, err := volume.FindMatchingVolume(k.pvc, c.offered(k.class.Name), n, taken, true, true); err == nil && pv != nil {
			taken[pv.Name] = pv
			return ""
		}
	}
	if k.class.Provisioner == "" || k.class.Provisioner == volume.NotSupportedProvisioner {
		return "finds no volume of class " + k.class.Name
	}
	if !v1helper.MatchTopologySelectorTerms(k.class.AllowedTopologies, labels.Set(n.Labels)) {
		return "of class " + k.class.Name + " may not be provisioned there"
	}
	return ""
}

// offered are the volumes of a class, bound or not.
func (c *Cluster) offered(class string) []*corev1.PersistentVolume {
	var out []*corev1.PersistentVolume
	for _, pv := range c.objects.PersistentVolumes {
		if volume.GetPersistentVolumeClass(pv) == class {
			out = append(out, pv)
		}
	}
	return out
}

// disks rejects nodes on which another pod has mounted a disk that only one may.
func (c *Cluster) disks(pod *corev1.Pod) check {
	inline := false
	for _, v := range pod.Spec.Volumes {
		inline = inline || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.RBD != nil || v.ISCSI != nil
	}
	if !inline {
		return nil
	}
	_, features := c.store.get(c.objects)
	only := *pod
	only.Spec.Volumes = nil
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil { // these are judged by usable
			only.Spec.Volumes = append(only.Spec.Volumes, v)
		}
	}
	return checkOf(VolumeNode, c.asked(built(volumerestrictions.New(context.Background(), nil, c.handle(), features)), &only))
}

// attachable rejects nodes that have reached the number of volumes that a CSI driver can attach.
func (c *Cluster) attachable(pod *corev1.Pod) check {
	claims := c.claims(pod)
	planned := slices.ContainsFunc(claims, func(k claim) bool { return k.planned })
	if len(claims) == 0 || planned || c.usable(pod) != nil {
		return nil
	}
	_, features := c.store.get(c.objects)
	return checkOf(VolumeLimits, c.asked(built(nodevolumelimits.NewCSI(context.Background(), nil, c.handle(), features)), pod))
}
