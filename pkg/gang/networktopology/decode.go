package networktopology

import (
	"errors"
	"fmt"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/gang"
)

// hyperNode is a HyperNode of Volcano.
type hyperNode struct {
	name     string
	tier     int
	tierName string
	nodes    []selector // its members
	children []string   // members that are HyperNodes
}

// selector selects nodes by one of these.
type selector struct {
	name    string
	pattern *regexp.Regexp
	labels  labels.Selector
}

// layer is a layer of a ClusterNetworkTopology: the first of the labels that a node has is its domain.
type layer struct {
	name   string
	labels []string
}

// decodeHyperNode reads a HyperNode. One that has a rule which cannot be read is an error: part of a domain would be another domain.
func decodeHyperNode(u *unstructured.Unstructured) (*hyperNode, error) {
	f := gang.Fields{Object: u}
	h := &hyperNode{name: u.GetName(), tier: int(f.Int32("spec", "tier")), tierName: f.String("spec", "tierName")}
	if f.Err == nil && (h.tier < 0 || h.tier > MaxTier) {
		return nil, fmt.Errorf("HyperNode %s: tier %d is not from 0 to %d", h.name, h.tier, MaxTier)
	}
	for _, member := range f.List("spec", "members") {
		s, err := decodeSelector(member)
		if err != nil {
			return nil, fmt.Errorf("HyperNode %s: %w", h.name, err)
		}
		switch kind := member["type"]; kind {
		case "Node":
			h.nodes = append(h.nodes, s)
		case "HyperNode":
			if s.name == "" {
				return nil, fmt.Errorf("HyperNode %s: HyperNodes are members by their names only", h.name)
			}
			h.children = append(h.children, s.name)
		default:
			return nil, fmt.Errorf("HyperNode %s: members of type %.80q are not known", h.name, fmt.Sprint(kind))
		}
	}
	return h, f.Err
}

func decodeSelector(member map[string]any) (selector, error) {
	var typed struct {
		Selector struct {
			ExactMatch *struct {
				Name string `json:"name"`
			} `json:"exactMatch"`
			RegexMatch *struct {
				Pattern string `json:"pattern"`
			} `json:"regexMatch"`
			LabelMatch *metav1.LabelSelector `json:"labelMatch"`
		} `json:"selector"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(member, &typed); err != nil {
		return selector{}, fmt.Errorf("spec.members: %w", err)
	}
	var s selector
	var err error
	switch by := typed.Selector; {
	case by.ExactMatch != nil:
		s.name = by.ExactMatch.Name
	case by.RegexMatch != nil:
		s.pattern, err = regexp.Compile(by.RegexMatch.Pattern)
	case by.LabelMatch != nil && len(by.LabelMatch.MatchLabels)+len(by.LabelMatch.MatchExpressions) == 0:
		s.labels = labels.Nothing() // as for Volcano
	case by.LabelMatch != nil:
		s.labels, err = metav1.LabelSelectorAsSelector(by.LabelMatch)
	default:
		err = errors.New("a member is selected by nothing")
	}
	if err != nil {
		return selector{}, fmt.Errorf("spec.members: %w", err)
	}
	return s, nil
}

// selects reports whether a node of a name and labels is selected.
func (s selector) selects(name string, set labels.Set) bool {
	switch {
	case s.pattern != nil:
		return s.pattern.MatchString(name)
	case s.labels != nil:
		return s.labels.Matches(set)
	}
	return s.name == name
}

// decodeLayers reads the layers of a ClusterNetworkTopology. The one of single nodes has no label.
func decodeLayers(u *unstructured.Unstructured) (all []layer, err error) {
	f := gang.Fields{Object: u}
	for _, item := range f.List("spec", "networkTopologySpec") {
		l := layer{}
		l.name, _ = item["topologyLayer"].(string)
		keys, _ := item["labelKey"].([]any)
		for _, key := range keys {
			if text, ok := key.(string); ok {
				l.labels = append(l.labels, text)
			}
		}
		if l.name != "" && len(l.labels) > 0 {
			all = append(all, l)
		}
	}
	return all, f.Err
}
