// Package koordinator reads the gangs of Koordinator: PodGroups of scheduling.sigs.k8s.io/v1alpha1, or annotations on pods
// alone.
package koordinator

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

const (
	// SchedulerName is Koordinator's own. Its labels are shared with other dialects, so the name decides.
	SchedulerName = "koord-scheduler"

	groupLabel    = "pod-group.scheduling.sigs.k8s.io"
	lightLabel    = "pod-group.scheduling.sigs.k8s.io/name"
	lightMinLabel = "pod-group.scheduling.sigs.k8s.io/min-available"
	nameKey       = "gang.scheduling.koordinator.sh/name"
	minKey        = "gang.scheduling.koordinator.sh/min-available"

	// topologyKey lists layers of a ClusterNetworkTopology, which is not read, so that it is not known by which labels members share a domain.
	topologyKey = "gang.scheduling.koordinator.sh/network-topology-spec"
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
			d.Unapplied = networkTopology(u)
			return d, err
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
		if d.Unapplied == nil {
			d.Unapplied = networkTopology(pod)
		}
	}
	if !declared {
		return d, fmt.Errorf("no pod has annotation %s", minKey)
	}
	return d, nil
}

// networkTopology is the rule by which members share a domain of a layer; nil without. A gather strategy is MustGather or PreferGather.
func networkTopology(object metav1.Object) []gang.UnappliedRule {
	text := object.GetAnnotations()[topologyKey]
	if text == "" {
		return nil
	}
	return []gang.UnappliedRule{{Text: "the network topology in annotation " + topologyKey, Required: strings.Contains(text, "MustGather")}}
}

func parseMin(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 {
		return 1, fmt.Errorf("%s=%q is not a whole number from 1 on", minKey, s)
	}
	return int32(n), nil
}
