// Package networktopology reads the objects by which Volcano and Koordinator describe a network: HyperNodes, which list nodes, and layers, which name
// labels of nodes. Of both it makes labels of nodes, one a level, so that whatever places, explains or lists by labels knows these levels, too.
// No label is written to the API server.
package networktopology

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// MaxTier is the highest tier of HyperNodes that is read. Each is a label of every node.
const MaxTier = gang.MaxTopologyKeys

// The labels that nodes get begin with one of these.
const (
	tierPrefix  = "gangctl.dev/hypernode-tier-"
	namePrefix  = "gangctl.dev/hypernode-tiername-"
	layerPrefix = "gangctl.dev/network-layer-"
)

// TierKey is the label of which nodes have the same value that are in one HyperNode of a tier, or of a lower one.
func TierKey(tier int32) string { return fmt.Sprint(tierPrefix, tier) }

// TierNameKey is TierKey for the tier of a name, as HyperNodes have it in spec.tierName.
func TierNameKey(name string) string { return namePrefix + name }

// LayerKey is the label of which nodes have the same value that are in one domain of a layer.
func LayerKey(layer string) string { return layerPrefix + layer }

// Title is what users call one domain of a key: HyperNode of tier 2 or lower. It is empty for a label that nodes have by themselves.
func Title(key string) string {
	if tier, ok := strings.CutPrefix(key, tierPrefix); ok {
		return "HyperNode of tier " + tier + " or lower"
	}
	if name, ok := strings.CutPrefix(key, namePrefix); ok {
		return "HyperNode of tier " + name + " or lower"
	}
	if layer, ok := strings.CutPrefix(key, layerPrefix); ok {
		return "domain of layer " + layer
	}
	return ""
}

// Tier is the tier of a key of [TierKey]; ok is false of others.
func Tier(key string) (tier int, ok bool) {
	text, ok := strings.CutPrefix(key, tierPrefix)
	if !ok {
		return 0, false
	}
	_, err := fmt.Sscan(text, &tier)
	return tier, err == nil
}

// derived reports whether a label is one of ours.
func derived(key string) bool { return Title(key) != "" }

// Of two kinds of objects levels are read.
var (
	hyperNodes = gang.Served{GroupKind: schema.GroupKind{Group: "topology.volcano.sh", Kind: "HyperNode"}, Resource: "hypernodes"}
	layers     = gang.Served{GroupKind: schema.GroupKind{Group: "scheduling.koordinator.sh", Kind: "ClusterNetworkTopology"}, Resource: "clusternetworktopologies"}
)

// Kinds are the kinds of the objects that are read. They have no namespace.
func Kinds() []gang.Served { return []gang.Served{hyperNodes, layers} }

// Resource is where the levels of a key are read; ok is false of a label that nodes have by themselves.
func Resource(key string) (resource schema.GroupResource, ok bool) {
	switch {
	case strings.HasPrefix(key, layerPrefix):
		return schema.GroupResource{Group: layers.Group, Resource: layers.Resource}, true
	case derived(key):
		return schema.GroupResource{Group: hyperNodes.Group, Resource: hyperNodes.Resource}, true
	}
	return schema.GroupResource{}, false
}
