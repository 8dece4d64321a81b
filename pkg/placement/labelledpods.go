package placement

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// labelledPods are the pods of a cluster that have a label, by its value. A constraint that counts the pods of one job or one service finds
// them here without a look at every pod.
type labelledPods struct {
	key  string
	pods map[string]map[*corev1.Pod]int // by value: the position of each pod's node
}

func (l *labelledPods) add(n *node, at int) {
	for _, p := range n.info.Pods {
		pod := p.GetPod()
		value, ok := pod.Labels[l.key]
		if !ok {
			continue
		}
		if l.pods[value] == nil {
			l.pods[value] = map[*corev1.Pod]int{}
		}
		l.pods[value][pod] = at
	}
}

func (l *labelledPods) remove(n *node) {
	for _, p := range n.info.Pods {
		pod := p.GetPod()
		if value, ok := pod.Labels[l.key]; ok {
			delete(l.pods[value], pod)
			if len(l.pods[value]) == 0 {
				delete(l.pods, value)
			}
		}
	}
}

// maxLabels is of how many labels the pods are kept. Users choose them, in the selectors of their pods.
const maxLabels = 8

// podsLike returns the pods that have a label which a selector requires, with the positions of their nodes; ok is false for a selector that
// requires none.
func (x *Index) podsLike(selector labels.Selector) (pods map[*corev1.Pod]int, ok bool) {
	of, ok := requiredLabel(selector)
	if !ok {
		return nil, false
	}
	return x.labelledBy(of.key).pods[of.value], true
}

// labelledBy returns the pods that have a label. The least recently used labels are dropped.
func (x *Index) labelledBy(key string) *labelledPods {
	for i, l := range x.labelled {
		if l.key == key {
			copy(x.labelled[1:i+1], x.labelled[:i])
			x.labelled[0] = l
			return l
		}
	}
	l := &labelledPods{key: key, pods: map[string]map[*corev1.Pod]int{}}
	for at, n := range x.cluster.nodes {
		l.add(n, at)
	}
	x.labelled = append([]*labelledPods{l}, x.labelled[:min(len(x.labelled), maxLabels-1)]...)
	return l
}
