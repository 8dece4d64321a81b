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

// Each tier of HyperNodes, and each name of one, is a label of nodes, and a level of the search for a place.
const (
	// MaxTier is the highest tier that is read; the lowest is 0.
	MaxTier = gang.MaxTopologyKeys - 1
	// MaxTierName is how long the name of a tier is at most.
	MaxTierName = 40
	// maxTierNames is how many names of tiers are read, the first in their order.
	maxTierNames = 8
)

// The labels that nodes get begin with one of these.
const (
	tierPrefix  = "gangctl.dev/hypernode-tier-"
	namePrefix  = "gangctl.dev/hypernode-tiername-"
	layerPrefix = "gangctl.dev/network-layer-"
)

// TierKey is the label of which nodes have the same value that are in one HyperNode of a tier, or of a lower one.
func TierKey(tier int) string { return fmt.Sprint(tierPrefix, tier) }

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

// Layer is the layer of a key of [LayerKey]; ok is false of others.
func Layer(key string) (layer string, ok bool) { return strings.CutPrefix(key, layerPrefix) }

// Derived reports whether a label is one that nodes get here, and do not have by themselves.
func Derived(key string) bool { return strings.HasPrefix(key, "gangctl.dev/") && Title(key) != "" }

// Of two kinds of objects levels are read.
var (
	hyperNodes = gang.Served{GroupKind: schema.GroupKind{Group: "topology.volcano.sh", Kind: "HyperNode"}, Resource: "hypernodes"}
	layers     = gang.Served{GroupKind: schema.GroupKind{Group: "scheduling.koordinator.sh", Kind: "ClusterNetworkTopology"}, Resource: "clusternetworktopologies"}
)

// theLayers is the name of the one ClusterNetworkTopology that counts.
const theLayers = "default"

// Kinds are the kinds of the objects that are read. They have no namespace.
func Kinds() []gang.Served { return []gang.Served{hyperNodes, layers} }

// Resource is where the levels of a key are read; ok is false of a label that nodes have by themselves.
func Resource(key string) (resource schema.GroupResource, ok bool) {
	switch {
	case strings.HasPrefix(key, layerPrefix):
		return schema.GroupResource{Group: layers.Group, Resource: layers.Resource}, true
	case Derived(key):
		return schema.GroupResource{Group: hyperNodes.Group, Resource: hyperNodes.Resource}, true
	}
	return schema.GroupResource{}, false
}
