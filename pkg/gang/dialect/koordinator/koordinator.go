// Package koordinator reads the gangs of Koordinator: PodGroups of scheduling.sigs.k8s.io/v1alpha1, or annotations on pods
// alone.
package koordinator

import (
	"encoding/json"
	"errors"
	"fmt"
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

	// TopologyAnnotation lists layers of a ClusterNetworkTopology in whose domains members are together.
	TopologyAnnotation = "gang.scheduling.koordinator.sh/network-topology-spec"
)

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
			return d, errors.Join(err, networkTopology(u, &d))
		},
		FromPods: fromPods,
	}
}

func fromPods(key gang.Key, pods []*corev1.Pod) (gang.Declaration, error) {
	d := gang.Declaration{Key: key, MinMember: 1}
	declared := false
	for _, pod := range pods {
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
		if text := pod.Annotations[TopologyAnnotation]; text != "" && d.Unapplied == nil {
			d.Unapplied = []gang.UnappliedRule{{Text: "the network topology in annotation " + TopologyAnnotation + " of its pods", Required: strings.Contains(text, "MustGather")}}
		}
	}
	if !declared {
		return d, fmt.Errorf("no pod has annotation %s", minKey)
	}
	return d, nil
}

// gather is one layer of the annotation.
type gather struct {
	Layer    string `json:"layer"`
	Strategy string `json:"strategy"`
}

// networkTopology reads the layers in whose domains members are together: they must be for one layer (MustGather), and should be for others
// (PreferGather), in the order in which those are listed. Two layers that must are not read: which one is the narrower, only the scheduler of Koordinator
// knows.
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
	for _, g := range spec.GatherStrategy {
		key := networktopology.LayerKey(g.Layer)
		switch {
		case g.Layer == "NodeTopologyLayer":
			key = corev1.LabelHostname
		case g.Layer == "ClusterTopologyLayer":
			continue
		}
		switch {
		case g.Strategy != "MustGather":
			t.Preferred = append(t.Preferred, key)
		case t.Required != "":
			d.Unapplied = append(d.Unapplied, gang.UnappliedRule{Text: "the network topology (two layers that must gather) in annotation " + TopologyAnnotation, Required: true})
		default:
			t.Required = key
		}
	}
	if err := t.Validate(); err != nil {
		return fmt.Errorf("annotation %s: %w", TopologyAnnotation, err)
	}
	d.SetTopology(t, gang.TopologyField)
	return nil
}

func parseMin(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 {
		return 1, fmt.Errorf("%s=%q is not a whole number from 1 on", minKey, s)
	}
	return int32(n), nil
}
