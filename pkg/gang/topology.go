package gang

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotations of a group object, or of pods where a dialect has none, by which members share a domain. They are for dialects whose own
// fields cannot express it; where such a field is set, it counts.
const (
	TopologyRequired  = "gangctl.dev/topology-required"
	TopologyPreferred = "gangctl.dev/topology-preferred"
)

// TopologyAnnotations are all annotations by which members share a domain.
func TopologyAnnotations() []string {
	return []string{TopologyRequired, TopologyPreferred, TopologyParts}
}

// MaxTopologyKeys is how many keys a gang may prefer. Each is a pass over the cluster's domains, and clusters have half as many levels.
const MaxTopologyKeys = 8

// Topology is by which node labels the members of a gang share a domain: the nodes with one value of a label. Nodes without the label are in
// no domain.
type Topology struct {
	// Required is the label of which all members need the same value; empty without such a rule.
	Required string
	// Preferred are the labels of which all members should have the same value, the narrowest first: the first with room for the gang
	// counts. With Required it is a domain within a required one.
	Preferred []string
	// Parts are rules by which the members of each part share a domain of their own, within that of all.
	Parts []PartRule
}

// TopologySource is where a topology is stated.
type TopologySource string

// The sources, and what they are called.
const (
	// TopologyField is a field of the group object's spec.
	TopologyField TopologySource = "spec"
	// TopologyAnnotation are annotations of the group object.
	TopologyAnnotation TopologySource = "annotations"
	// TopologyPods are annotations of the pods.
	TopologyPods TopologySource = "pods"
)

// Empty reports whether members may be anywhere, as far as the gang is concerned.
func (t Topology) Empty() bool { return !t.OfAll() && len(t.Parts) == 0 }

// Or is the topology with rules of another one where it has none: for all members, or for parts.
func (t Topology) Or(other Topology) Topology {
	if !t.OfAll() {
		t.Required, t.Preferred = other.Required, other.Preferred
	}
	if len(t.Parts) == 0 {
		t.Parts = other.Parts
	}
	return t
}

// OfAll reports whether there is a rule that all members share.
func (t Topology) OfAll() bool { return t.Required != "" || len(t.Preferred) > 0 }

// Requires reports whether a member must share a domain, with all others or with those of its part.
func (t Topology) Requires(member metav1.Object) bool {
	return t.Required != "" || len(t.PartKeys(member)) > 0
}

// PartKeys are the labels of which a member must share a value with the others of its parts.
func (t Topology) PartKeys(member metav1.Object) (keys []string) {
	for _, r := range t.Parts {
		if _, in := r.Divide()(member); in && r.Required != "" {
			keys = append(keys, r.Required)
		}
	}
	return keys
}

// AllRequired are the labels of which all members, or those of a part, must share a value, each once.
func (t Topology) AllRequired() (keys []string) {
	if t.Required != "" {
		keys = append(keys, t.Required)
	}
	for _, r := range t.Parts {
		if r.Required != "" && !slices.Contains(keys, r.Required) {
			keys = append(keys, r.Required)
		}
	}
	return keys
}

// String is equal for equal topologies, and for no others.
func (t Topology) String() string {
	text := fmt.Sprintf("%s;%s;%s", t.Required, strings.Join(t.Preferred, ","), partsText(t.Parts))
	for i, r := range t.Parts {
		if r.Exclusive != "" {
			text += fmt.Sprintf(";%d=%s", i, r.Exclusive)
		}
	}
	return text
}

// Validate reports keys that no label can have, too many, or one twice.
func (t Topology) Validate() error {
	if t.Required != "" {
		if err := checkTopologyKey(t.Required); err != nil {
			return err
		}
	}
	if _, err := TopologyKeys(t.Preferred); err != nil {
		return err
	}
	return validateParts(t.Parts)
}

// TopologyOf reads annotations. Users write them: keys that no label can have, too many, or one twice are errors, as a rule that is not
// understood must not be ignored.
func TopologyOf(annotations map[string]string) (Topology, error) {
	t := Topology{Required: strings.TrimSpace(annotations[TopologyRequired])}
	if t.Required != "" {
		if err := checkTopologyKey(t.Required); err != nil {
			return Topology{}, fmt.Errorf("annotation %s: %w", TopologyRequired, err)
		}
	}
	var err error
	if t.Parts, err = partsOf(annotations[TopologyParts]); err != nil {
		return Topology{}, err
	}
	text := annotations[TopologyPreferred]
	if strings.TrimSpace(text) == "" {
		return t, nil
	}
	if t.Preferred, err = TopologyKeys(strings.SplitN(text, ",", MaxTopologyKeys+1)); err != nil {
		return Topology{}, fmt.Errorf("annotation %s: %w", TopologyPreferred, err)
	}
	return t, nil
}

// TopologyOfPods reads the annotations of pods. Those without any agree with the others; those that disagree are an error.
func TopologyOfPods(pods iter.Seq[*corev1.Pod]) (Topology, error) {
	var all Topology
	var first *corev1.Pod
	for pod := range pods {
		if first != nil && pod.Annotations[TopologyParts] != "" && pod.Annotations[TopologyParts] != first.Annotations[TopologyParts] { // read once, as they may be long
			return Topology{}, disagree(first, pod)
		}
		if first != nil && sameTopology(first, pod) {
			continue
		}
		t, err := TopologyOf(pod.Annotations)
		switch {
		case err != nil:
			return Topology{}, fmt.Errorf("pod %s: %w", pod.Name, err)
		case t.Empty():
		case first == nil:
			all, first = t, pod
		case t.String() != all.String():
			return Topology{}, disagree(first, pod)
		}
	}
	return all, nil
}

func disagree(a, b *corev1.Pod) error {
	return fmt.Errorf("pods %s and %s have different annotations %s, %s or %s", a.Name, b.Name, TopologyRequired, TopologyPreferred, TopologyParts)
}

// sameTopology reports whether two pods have the same annotations.
func sameTopology(a, b *corev1.Pod) bool {
	return !slices.ContainsFunc(TopologyAnnotations(), func(key string) bool { return a.Annotations[key] != b.Annotations[key] })
}

// TopologyKeys are the keys of preferred domains, as users list them.
func TopologyKeys(list []string) ([]string, error) {
	if len(list) > MaxTopologyKeys {
		return nil, fmt.Errorf("more than %d keys", MaxTopologyKeys)
	}
	var keys []string
	for _, key := range list {
		key = strings.TrimSpace(key)
		if err := checkTopologyKey(key); err != nil {
			return nil, err
		}
		if slices.Contains(keys, key) {
			return nil, fmt.Errorf("%s is there twice", key)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// checkTopologyKey reports what is wrong with the key of a label. The text is cut: users write it, and it is repeated in events.
func checkTopologyKey(key string) error {
	if problems := content.IsLabelKey(key); len(problems) > 0 {
		return fmt.Errorf("%.80q is not the key of a label: %s", key, problems[0])
	}
	return nil
}

// Annotations are those of [TopologyOf]; nil without a rule.
func (t Topology) Annotations() map[string]string {
	var annotations map[string]string
	set := func(key, value string) {
		if value == "" {
			return
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
	}
	set(TopologyRequired, t.Required)
	set(TopologyPreferred, strings.Join(t.Preferred, ","))
	set(TopologyParts, partsText(t.Parts))
	return annotations
}
