// Package koordinator reads the gangs of Koordinator: PodGroups of scheduling.sigs.k8s.io/v1alpha1, or annotations on pods
// alone.
package koordinator

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
)

const (
	// SchedulerName is Koordinator's own. Its labels are shared with other dialects, so the name decides.
	SchedulerName = "koord-scheduler"

	groupLabel    = "pod-group.scheduling.sigs.k8s.io"
	lightLabel    = "pod-group.scheduling.sigs.k8s.io/name"
	lightMinLabel = "pod-group.scheduling.sigs.k8s.io/min-available"
	nameKey       = "gang.scheduling.koordinator.sh/name"
	minKey        = "gang.scheduling.koordinator.sh/min-available"
	groupsKey     = "gang.scheduling.koordinator.sh/groups"

	// TopologyAnnotation lists layers of a ClusterNetworkTopology in whose domains members are together.
	TopologyAnnotation = "gang.scheduling.koordinator.sh/network-topology-spec"
)

// ReservationKind is the kind by which Koordinator keeps room on a node for pods to come.
func ReservationKind() schema.GroupKind {
	return schema.GroupKind{Group: "scheduling.koordinator.sh", Kind: "Reservation"}
}

// NameOf returns the gang that a pod names: the first of two labels and an annotation.
func NameOf(pod metav1.Object) (string, bool) {
	for _, name := range []string{pod.GetLabels()[groupLabel], pod.GetLabels()[lightLabel], pod.GetAnnotations()[nameKey]} {
		if name != "" {
			return name, true
		}
	}
	return "", false
}

// Reader reads this dialect.
func Reader() gang.Reader {
	return gang.Reader{
		Dialect:    gang.Koordinator,
		Kinds:      []gang.Served{{GroupKind: schema.GroupKind{Group: "scheduling.sigs.k8s.io", Kind: "PodGroup"}, Resource: "podgroups"}},
		Schedulers: []string{SchedulerName}, NameOf: NameOf,
		Decode: func(u *unstructured.Unstructured) (gang.Declaration, error) {
			d, err := gang.DecodeGroup(gang.Koordinator, u)
			if min := u.GetAnnotations()[minKey]; min != "" && err == nil {
				d.MinMember, err = parseMin(min)
			}
			alongside(u, &d)
			return d, errors.Join(err, networkTopology(u, &d))
		},
		FromPods: fromPods,
		SetMinimum: func(template *metav1.ObjectMeta, minimum int32, _, _ []gang.Role) {
			gang.Restate(template.Annotations, minimum, minKey)
			gang.Restate(template.Labels, minimum, lightMinLabel)
		},
	}
}

func fromPods(key gang.Key, pods []*corev1.Pod) (gang.Declaration, error) {
	d := gang.Declaration{Key: key, MinMember: 1}
	declared := false
	var placed, listed *corev1.Pod // the first with a topology, and the first with a list of gangs
	for _, pod := range pods {
		if listed == nil && pod.Annotations[groupsKey] != "" {
			listed = pod
			alongside(pod, &d)
		}
		for _, min := range []string{pod.Annotations[minKey], pod.Labels[lightMinLabel]} {
			if min == "" {
				continue
			}
			n, err := parseMin(min)
			if err != nil {
				return d, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
			d.MinMember, declared = max(d.MinMember, n), true
		}
		switch text := pod.Annotations[TopologyAnnotation]; {
		case text == "":
		case placed == nil:
			placed = pod
			if err := networkTopology(pod, &d); err != nil {
				d.TopologyProblem = fmt.Errorf("pod %s: %w", pod.Name, err)
			}
			d.TopologyFrom = gang.TopologyPods
		case text != placed.Annotations[TopologyAnnotation]:
			d.TopologyProblem = fmt.Errorf("pods %s and %s have different annotations %s", placed.Name, pod.Name, TopologyAnnotation)
		}
	}
	if !declared {
		return d, fmt.Errorf("no pod has annotation %s", minKey)
	}
	return d, nil
}

// maxAlongside is how many gangs are read that are placed together with one. Users write them.
const maxAlongside = 32

// alongside reads the gangs that are placed together with one, each as namespace/name, its own among them. A list that cannot be read is a rule that is not applied.
func alongside(object metav1.Object, d *gang.Declaration) {
	text := object.GetAnnotations()[groupsKey]
	if text == "" {
		return
	}
	var names []string
	if err := json.Unmarshal([]byte(text), &names); err != nil || len(names) > maxAlongside {
		d.Unapplied = append(d.Unapplied, gang.UnappliedRule{Text: "the list of gangs that are placed together, in annotation " + groupsKey, Required: true})
		return
	}
	for _, name := range names {
		key := gang.Key{Dialect: gang.Koordinator}
		key.Namespace, key.Name, _ = strings.Cut(name, "/")
		if key != d.Key && !slices.Contains(d.Alongside, key) {
			d.Alongside = append(d.Alongside, key)
		}
	}
}

// gather is one layer of the annotation.
type gather struct {
	Layer    string          `json:"layer"`
	Strategy string          `json:"strategy"`
	Multiple json.RawMessage `json:"podCountMultiple,omitempty"`
}

// networkTopology reads the layers in whose domains members are together: they must be for one layer (MustGather), and should be for others
// (PreferGather), in any order: which one is the narrower, nodes show. Further layers that must gather are a rule for a part that has all members. Of how many pods
// each domain has to have a multiple is not applied.
func networkTopology(object metav1.Object, d *gang.Declaration) error {
	text := object.GetAnnotations()[TopologyAnnotation]
	if text == "" {
		return nil
	}
	var spec struct {
		GatherStrategy []gather `json:"gatherStrategy"`
	}
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return fmt.Errorf("annotation %s: %w", TopologyAnnotation, err)
	}
	var t gang.Topology
	multiple := false
	for _, g := range spec.GatherStrategy {
		multiple = multiple || len(g.Multiple) > 0
		switch key := layerKey(g.Layer); {
		case key == "":
		case g.Strategy != "MustGather":
			t.Preferred = append(t.Preferred, key)
		case t.Required == "":
			t.Required = key
		default:
			t.Parts = append(t.Parts, gang.PartRule{Required: key})
		}
	}
	if multiple {
		d.Unapplied = append(d.Unapplied, gang.UnappliedRule{Text: "podCountMultiple of the network topology in annotation " + TopologyAnnotation, Required: true})
	}
	if err := t.Validate(); err != nil {
		return fmt.Errorf("annotation %s: %w", TopologyAnnotation, err)
	}
	d.SetTopology(t, gang.TopologyField)
	return nil
}

// layerKey is the label of nodes that are in one domain of a layer; empty for the layer of the whole cluster.
func layerKey(layer string) string {
	switch layer {
	case "NodeTopologyLayer":
		return corev1.LabelHostname
	case "ClusterTopologyLayer":
		return ""
	}
	return networktopology.LayerKey(layer)
}

// GatherStrategy is the annotation of a topology by layers, with further layers as rules for a part that has all members; empty for one that has other labels. Other rules for parts
// are in an annotation of their own.
func GatherStrategy(t gang.Topology) string {
	var all []gather
	add := func(key, strategy string) bool {
		layer, ok := networktopology.Layer(key)
		if key == corev1.LabelHostname {
			layer, ok = "NodeTopologyLayer", true
		}
		all = append(all, gather{Layer: layer, Strategy: strategy})
		return ok
	}
	for _, key := range t.Preferred {
		if !add(key, "PreferGather") {
			return ""
		}
	}
	if t.Required != "" && !add(t.Required, "MustGather") {
		return ""
	}
	for _, rule := range t.Parts {
		if _, layer := networktopology.Layer(rule.Required); layer && rule.Selector == "" && len(rule.By) == 0 {
			add(rule.Required, "MustGather")
		}
	}
	text, err := json.Marshal(struct {
		GatherStrategy []gather `json:"gatherStrategy"`
	}{all})
	if err != nil {
		return "" // texts have an encoding
	}
	return string(text)
}

func parseMin(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 {
		return 1, fmt.Errorf("%s=%q is not a whole number from 1 on", minKey, s)
	}
	return int32(n), nil
}
