package placement

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/gang"
)

// countsCapacity reports whether kube-scheduler compares a claim that waits for its first consumer with what its driver publishes of the storage of nodes.
func (c *Cluster) countsCapacity(k claim) bool {
	driver := gang.Named(c.objects.CSIDrivers, "", k.class.Provisioner)
	return driver != nil && ptr.Deref(driver.Spec.StorageCapacity, false)
}

// publishesCapacity reports whether it is known what storage there is for a class.
func (c *Cluster) publishesCapacity(class *storagev1.StorageClass) bool {
	for _, s := range c.objects.StorageCapacities {
		if s.StorageClassName == class.Name {
			return true
		}
	}
	return false
}

// lacksCapacity is why a node has too little storage for a claim; empty if it has enough, or if that is not known. As kube-scheduler does, it looks at each claim alone.
func (c *Cluster) lacksCapacity(k claim, n *corev1.Node) string {
	if c.anyStorage || !c.countsCapacity(k) || !c.publishesCapacity(k.class) {
		return ""
	}
	requests, most := k.pvc.Spec.Resources.Requests[corev1.ResourceStorage], c.storageOn(k.class, n)
	if most.Cmp(requests) >= 0 {
		return ""
	}
	return fmt.Sprintf("needs %s of class %s, of which there are %s", requests.String(), k.class.Name, most.String())
}

// storageOn is the largest volume of a class that can be made on a node.
func (c *Cluster) storageOn(class *storagev1.StorageClass, n *corev1.Node) (most resource.Quantity) {
	for _, s := range c.objects.StorageCapacities {
		if s.StorageClassName != class.Name || s.NodeTopology == nil {
			continue
		}
		where, err := metav1.LabelSelectorAsSelector(s.NodeTopology)
		if err != nil || !where.Matches(labels.Set(n.Labels)) {
			continue
		}
		if has := largestVolume(s); has != nil && has.Cmp(most) > 0 {
			most = *has
		}
	}
	return most
}

// AnyStorage returns the cluster in which there is storage for each volume that is to be made: what is in use may be freed. It is c itself where it is not known how much there is.
func (c *Cluster) AnyStorage() *Cluster {
	if c.anyStorage || len(c.objects.StorageCapacities) == 0 {
		return c
	}
	after := c.copy()
	after.anyStorage = true
	return after
}

// StorageNeed is a volume that is to be made for a pod, and where there is storage for it.
type StorageNeed struct {
	Claim, Class string
	Requested    resource.Quantity
	// Enough are the nodes that have storage for it, Few those that have less, at most Largest for one volume; nodes without any are left out.
	Enough, Few []string
	Largest     resource.Quantity
}

// StorageNeeds are the volumes that are to be made for a pod, of classes of which it is known how much storage nodes have.
func (c *Cluster) StorageNeeds(pod *corev1.Pod) (all []StorageNeed) {
	for _, k := range c.claims(pod) {
		if k.class == nil || k.problem != "" || !c.countsCapacity(k) || !c.publishesCapacity(k.class) {
			continue
		}
		need := StorageNeed{Claim: k.pvc.Name, Class: k.class.Name, Requested: k.pvc.Spec.Resources.Requests[corev1.ResourceStorage]}
		for _, n := range c.Nodes() {
			switch has := c.storageOn(k.class, n); {
			case has.IsZero():
			case has.Cmp(need.Requested) >= 0:
				need.Enough = append(need.Enough, n.Name)
			default:
				need.Few = append(need.Few, n.Name)
				if has.Cmp(need.Largest) > 0 {
					need.Largest = has
				}
			}
		}
		all = append(all, need)
	}
	return all
}

// largestVolume is the largest volume that can be made of some storage; nil if that is not known.
func largestVolume(s *storagev1.CSIStorageCapacity) *resource.Quantity {
	if s.MaximumVolumeSize != nil {
		return s.MaximumVolumeSize
	}
	return s.Capacity
}
