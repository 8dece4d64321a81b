package placement

import (
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// snapshot lists the nodes of a Cluster.
type snapshot struct {
	fwk.SharedLister
	c *Cluster
}

func (s snapshot) NodeInfos() fwk.NodeInfoLister { return s }

func (s snapshot) StorageInfos() fwk.StorageInfoLister { return s }

// List implements fwk.NodeInfoLister.
func (s snapshot) List() ([]fwk.NodeInfo, error) {
	return s.which(func(*node) bool { return true }), nil
}

// HavePodsWithAffinityList implements fwk.NodeInfoLister.
func (s snapshot) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	return s.which(func(n *node) bool { return len(n.info.PodsWithAffinity) > 0 }), nil
}

// HavePodsWithRequiredAntiAffinityList implements fwk.NodeInfoLister.
func (s snapshot) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	return s.which(func(n *node) bool { return len(n.info.PodsWithRequiredAntiAffinity) > 0 }), nil
}

// HavePodsWithRequiredNonHostScopedAntiAffinityList implements fwk.NodeInfoLister.
func (s snapshot) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	return s.which(func(n *node) bool { return len(n.info.PodsWithRequiredNonHostScopedAntiAffinity) > 0 }), nil
}

// Get implements fwk.NodeInfoLister.
func (s snapshot) Get(name string) (fwk.NodeInfo, error) {
	if i, ok := s.c.byName[name]; ok {
		return s.c.nodes[i].info, nil
	}
	return nil, fmt.Errorf("node %q not found", name)
}

// IsPVCUsedByPods implements fwk.StorageInfoLister.
func (s snapshot) IsPVCUsedByPods(key string) bool {
	for _, n := range s.c.nodes {
		if n.info.PVCRefCounts[key] > 0 {
			return true
		}
	}
	return false
}

func (s snapshot) which(f func(*node) bool) []fwk.NodeInfo {
	count := 0
	for _, n := range s.c.nodes {
		if f(n) {
			count++
		}
	}
	out := make([]fwk.NodeInfo, 0, count)
	for _, n := range s.c.nodes {
		if f(n) {
			out = append(out, n.info)
		}
	}
	return out
}

// csiNodes lists CSINodes.
type csiNodes struct{ list []*storagev1.CSINode }

func (c csiNodes) CSINodes() fwk.CSINodeLister { return c }

// List implements fwk.CSINodeLister.
func (c csiNodes) List() ([]*storagev1.CSINode, error) { return c.list, nil }

// Get implements fwk.CSINodeLister.
func (c csiNodes) Get(name string) (*storagev1.CSINode, error) {
	for _, n := range c.list {
		if n.Name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("CSINode %q not found", name)
}
