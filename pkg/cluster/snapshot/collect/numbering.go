package collect

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot/intern"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
)

// numbering is what is done about labels that only number a pod among its siblings, and say what its name says too. Because of
// them no two pods of a job have the same labels; without them they all share one map. A rule may select by such a label, so
// if any object names one, all get theirs back. A nil numbering leaves every label where it is.
type numbering struct {
	numbers []number
	named   atomic.Bool
	// stripped are the pods that lack some, by which they lack, and now is what the pod lacks that is being decoded: a bit for
	// each of the numbers.
	stripped map[uint64][]*corev1.Pod
	now      uint64
}

// number is a label that numbers pods.
type number struct {
	key []byte
	// role is the label whose value stands before the number in a name; nil for none. whole labels hold the whole name.
	role  []byte
	whole bool
}

func newNumbering() *numbering {
	n := &numbering{stripped: map[uint64][]*corev1.Pod{}, numbers: []number{
		{key: []byte("statefulset.kubernetes.io/pod-name"), whole: true}, {key: []byte("apps.kubernetes.io/pod-index")},
	}}
	for _, pair := range kubeflow.LabelPairs() {
		n.numbers = append(n.numbers, number{key: []byte(pair[1]), role: []byte(pair[0])})
	}
	return n
}

// look looks for the labels in an encoded object, or a part of one.
func (n *numbering) look(encoded []byte) {
	if n == nil || n.named.Load() {
		return
	}
	if slices.ContainsFunc(n.numbers, func(l number) bool { return bytes.Contains(encoded, l.key) }) {
		n.named.Store(true)
	}
}

// lookAtPod looks for the labels in what an encoded pod asks for: that it has them itself says nothing.
func (n *numbering) lookAtPod(encoded []byte) error {
	if n == nil {
		return nil
	}
	return prune.Each(encoded, func(number int, _, content []byte) error {
		if number == podSpec {
			n.look(content)
		}
		return nil
	})
}

// strip leaves the labels out of those of a pod, in the same memory.
func (n *numbering) strip(name []byte, labels *intern.Entries) {
	n.now = 0
	dash := bytes.LastIndexByte(name, '-')
	if dash < 0 {
		return
	}
	for i, l := range n.numbers {
		value, ok := labels.Get(l.key)
		if !ok || l.whole && !bytes.Equal(value, name) || !l.whole && !bytes.Equal(value, name[dash+1:]) {
			continue
		}
		if l.role != nil {
			role, _ := labels.Get(l.role)
			before, ok := bytes.CutSuffix(name[:dash], bytes.ToLower(role))
			if !ok || len(role) == 0 || len(value) > kubeflow.IndexDigits || !bytes.HasSuffix(before, []byte("-")) {
				continue
			}
		}
		n.now |= 1 << i
	}
	for i, l := range n.numbers {
		if n.now&(1<<i) != 0 {
			labels.Drop(l.key)
		}
	}
}

// note writes down what the pod that was just decoded lacks.
func (n *numbering) note(pod *corev1.Pod) {
	if n != nil && n.now != 0 {
		n.stripped[n.now] = append(n.stripped[n.now], pod)
		n.now = 0
	}
}

// finish gives the labels back if something names one.
func (n *numbering) finish() {
	if n == nil || !n.named.Load() {
		return
	}
	for set, pods := range n.stripped {
		for _, pod := range pods {
			n.number(pod, set)
		}
	}
}

// number gives a pod back what it lacks.
func (n *numbering) number(pod *corev1.Pod, set uint64) {
	labels := maps.Clone(pod.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	for i, l := range n.numbers {
		switch {
		case set&(1<<i) == 0:
		case l.whole:
			labels[string(l.key)] = pod.Name
		default:
			labels[string(l.key)] = pod.Name[strings.LastIndexByte(pod.Name, '-')+1:]
		}
	}
	pod.Labels = labels
}
