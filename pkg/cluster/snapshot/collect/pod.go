package collect

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/intern"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/page"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/prune"
)

// The numbers of fields of a pod in protobuf.
const (
	objectMeta            = 1
	podSpec               = 2
	podStatus             = 3
	metaNamespace         = 3
	metaDeletionTimestamp = 9
	specNodeName          = 10
	statusPhase           = 1
	statusContainers      = 8
	containerState        = 2
	stateRunning          = 2
	stateTerminated       = 3
	conditionType         = 1
	conditionStatus       = 2
	volumeSource          = 2
)

// Pods reads the pods of a namespace, or of all if it is empty, that a label selector selects: those that are well without what only
// the explanation of others takes, none with what its containers do. What is equal in several is shared, and must not be changed. An
// error is the API server's, as it is. Count, if it is not nil, counts them while they are read.
func Pods(ctx context.Context, client *kube.Client, namespace, selector string, count *atomic.Int64) ([]*corev1.Pod, error) {
	decode, err := readPods(Options{})
	if err != nil {
		return nil, err
	}
	r := podResource()
	r.labels = selector
	pods, _, err := readList(ctx, &collector{client: client, o: Options{Count: count}}, r, namespace, func(item page.Item) (*corev1.Pod, error) {
		obj, err := decode(item)
		if err != nil {
			return nil, err
		}
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			return nil, fmt.Errorf("a list of pods holds a %T", obj)
		}
		return pod, nil
	})
	return pods, err
}

// podResource is where pods are listed.
func podResource() resource { return of("", "v1", "pods", "Pod", everywhere, readPods) }

// readPods decodes pods. Those of other jobs that are well, or have succeeded, hold resources on a node and nothing else that is
// queried about: most pods of a large cluster are like that, and so they are kept small.
func readPods(o Options) (decoder, error) {
	fields, err := podFields().ForType(reflect.TypeFor[corev1.Pod]())
	if err != nil {
		return nil, err
	}
	more, err := compactFields().ForType(reflect.TypeFor[corev1.Pod]())
	if err != nil {
		return nil, err
	}
	pool, prefix := intern.NewPool(), []byte(o.prefix())
	kept := intern.Kept{Annotation: keptOfCompact, Volume: needsNode, Condition: hasNews}
	return func(item page.Item) (runtime.Object, error) {
		if !item.Protobuf {
			return fromJSON(item.Raw, podFields(), &corev1.Pod{})
		}
		small, err := isCompact(item.Raw, o.Namespace, prefix)
		if err != nil {
			return nil, err
		}
		raw, err := fields.Apply(item.Raw)
		if err != nil {
			return nil, err
		}
		if !small {
			return pool.Pod(raw, intern.Kept{Annotation: notLastApplied})
		}
		if raw, err = more.Apply(raw); err != nil {
			return nil, err
		}
		return pool.Pod(raw, kept)
	}, nil
}

// isCompact reports whether a pod needs no explanation: it is not of the job of the query, has a node, is not being deleted, and either runs
// with every container up or has succeeded.
func isCompact(data []byte, namespace string, prefix []byte) (bool, error) {
	well, bound, good := true, false, false
	inNamespace, named := false, false
	err := prune.Each(data, func(number int, _, whole []byte) error {
		if number == objectMeta {
			// Its pods have the job's name in their own, in labels, or as that of their owner.
			named = len(prefix) > 0 && bytes.Contains(whole, prefix)
		}
		return prune.Each(whole, func(inner int, _, content []byte) error {
			switch {
			case number == objectMeta && inner == metaDeletionTimestamp:
				well = false
			case number == objectMeta && inner == metaNamespace:
				inNamespace = string(content) == namespace
			case number == podSpec && inner == specNodeName:
				bound = len(content) > 0
			case number == podStatus && inner == statusPhase:
				good = string(content) == string(corev1.PodRunning) || string(content) == string(corev1.PodSucceeded)
			case number == podStatus && inner == statusContainers:
				up, err := containerUp(content)
				well = well && up
				return err
			}
			return nil
		})
	})
	return well && !(inNamespace && named) && bound && good, err
}

// containerUp reports whether a container runs or has ended, by its encoded status.
func containerUp(data []byte) (up bool, err error) {
	err = prune.Each(data, func(number int, _, content []byte) error {
		if number != containerState {
			return nil
		}
		return prune.Each(content, func(state int, _, _ []byte) error {
			up = up || state == stateRunning || state == stateTerminated
			return nil
		})
	})
	return up, err
}

func notLastApplied(key []byte) bool { return string(key) != lastApplied }

// keptOfCompact leaves out what networks write on each pod: it is long, and different everywhere.
func keptOfCompact(key []byte) bool {
	return notLastApplied(key) && !bytes.Contains(key, []byte("cni.")) && !bytes.Contains(key, []byte("ovn.org/"))
}

// anywhere are the sources of volumes that every node can provide, by their number in VolumeSource: hostPath, emptyDir, gitRepo,
// secret, downwardAPI, configMap, projected.
var anywhere = map[int]bool{1: true, 2: true, 5: true, 6: true, 16: true, 19: true, 26: true}

// needsNode reports whether a volume matters to where a pod can be.
func needsNode(data []byte) bool {
	needs := false
	err := prune.Each(data, func(number int, _, content []byte) error {
		if number != volumeSource {
			return nil
		}
		return prune.Each(content, func(source int, _, _ []byte) error {
			needs = needs || !anywhere[source]
			return nil
		})
	})
	return needs || err != nil
}

// hasNews reports whether a condition has more than that all is well.
func hasNews(data []byte) bool {
	kind, status, err := condition(data)
	if err != nil || string(status) != string(corev1.ConditionTrue) {
		return true
	}
	switch corev1.PodConditionType(kind) {
	case corev1.PodScheduled, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodReadyToStartContainers:
		return false
	default:
		return true
	}
}

// condition is the type and the status of an encoded condition of a pod or a node.
func condition(data []byte) (kind, status []byte, err error) {
	err = prune.Each(data, func(number int, _, content []byte) error {
		switch number {
		case conditionType:
			kind = content
		case conditionStatus:
			status = content
		}
		return nil
	})
	return kind, status, err
}
