// Package leaderworkerset reads the gangs that LeaderWorkerSets are: each replica is one, of as many members as its pods have in an
// annotation. The controller labels the pods; there is no object, and no template can name a gang, as all replicas have one template.
package leaderworkerset

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	kind "github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
)

// Reader reads this dialect.
func Reader() gang.Reader {
	return gang.Reader{Dialect: gang.LeaderWorkerSet, Implied: true, NameOf: NameOf, FromPods: fromPods}
}

// NameOf returns the gang of a pod of a replica, which is called as the controller calls the groups that it makes for Volcano: with the
// revision, so that pods of the replica before an update are not counted for the one after it. A pod with [gang.DialectAnnotation] none is
// in no gang, and neither is one of a replica that has a topology domain for itself: its workers are made when the leader has a node.
func NameOf(pod metav1.Object) (name string, ok bool) {
	labels, annotations := pod.GetLabels(), pod.GetAnnotations()
	set, replica := labels[kind.NameLabel], labels[kind.GroupIndexLabel]
	if set == "" || replica == "" || annotations[gang.DialectAnnotation] == string(gang.None) || annotations[kind.ExclusiveAnnotation] != "" {
		return "", false
	}
	name = set + "-" + replica
	if revision := labels[kind.RevisionLabel]; revision != "" {
		name += "-" + revision
	}
	return name, true
}

// fromPods reads the size. Members that disagree on it: the largest counts, as for other minimums of pods.
func fromPods(key gang.Key, pods []*corev1.Pod) (gang.Declaration, error) {
	d := gang.Declaration{Key: key, MinMember: 1}
	var first error
	for _, pod := range pods {
		value := pod.Annotations[kind.SizeAnnotation]
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 1 {
			if first == nil {
				first = fmt.Errorf("annotation %s=%q is not a whole number from 1 on", kind.SizeAnnotation, value)
			}
			continue
		}
		d.MinMember = max(d.MinMember, int32(n))
	}
	return d, first
}
