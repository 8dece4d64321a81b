// Package intercept catches what the engine would write to PodGroups that
// exist only inside the scheduler. Everything else passes through.
package intercept

import (
	"context"
	"encoding/json"
	"fmt"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedv1beta1 "k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"
	"k8s.io/client-go/util/watchlist"
)

// Conditions receives the conditions that the engine sets on virtual groups.
type Conditions interface {
	// GroupCondition returns the one of a type that a group has; nil for none.
	GroupCondition(namespace, name, kind string) *metav1.Condition
	SetCondition(namespace, name string, condition metav1.Condition) (group *schedulingv1beta1.PodGroup, news bool)
}

// Client wraps a clientset so that status patches of PodGroups go to sink.
func Client(client kubernetes.Interface, sink Conditions) kubernetes.Interface {
	return &clientset{Interface: client, sink: sink}
}

type clientset struct {
	kubernetes.Interface
	sink Conditions
}

// IsWatchListSemanticsUnSupported passes on whether informers must list before
// they watch. The name is client-go's, which looks for it in clients that keep
// objects in memory.
func (c *clientset) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(c.Interface)
}

// SchedulingV1beta1 implements kubernetes.Interface.
func (c *clientset) SchedulingV1beta1() typedv1beta1.SchedulingV1beta1Interface {
	return &scheduling{SchedulingV1beta1Interface: c.Interface.SchedulingV1beta1(), sink: c.sink}
}

type scheduling struct {
	typedv1beta1.SchedulingV1beta1Interface
	sink Conditions
}

// PodGroups implements typedv1beta1.SchedulingV1beta1Interface.
func (s *scheduling) PodGroups(namespace string) typedv1beta1.PodGroupInterface {
	return &podGroups{PodGroupInterface: s.SchedulingV1beta1Interface.PodGroups(namespace), namespace: namespace, sink: s.sink}
}

type podGroups struct {
	typedv1beta1.PodGroupInterface
	namespace string
	sink      Conditions
}

// Patch implements typedv1beta1.PodGroupInterface. The engine patches nothing
// but conditions; anything else is refused rather than dropped.
func (p *podGroups) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, subresources ...string) (*schedulingv1beta1.PodGroup, error) {
	if len(subresources) != 1 || subresources[0] != "status" {
		return nil, fmt.Errorf("patch virtual PodGroup %s/%s: only its status can be patched, not %v", p.namespace, name, subresources)
	}
	conditions, err := p.patched(name, data)
	if err != nil {
		return nil, fmt.Errorf("patch virtual PodGroup %s/%s: %w", p.namespace, name, err)
	}
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}}
	for _, condition := range conditions {
		if updated, _ := p.sink.SetCondition(p.namespace, name, condition); updated != nil {
			group = updated
		}
	}
	return group, nil
}

// patched are the conditions as a patch makes them. It is a strategic merge patch:
// of a condition that the group has, it holds what is to change.
func (p *podGroups) patched(name string, data []byte) ([]metav1.Condition, error) {
	var patch struct {
		Status struct {
			Conditions []json.RawMessage `json:"conditions"`
		} `json:"status"`
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	var conditions []metav1.Condition
	for _, change := range patch.Status.Conditions {
		var condition metav1.Condition
		if err := json.Unmarshal(change, &condition); err != nil {
			return nil, err
		}
		if old := p.sink.GroupCondition(p.namespace, name, condition.Type); old != nil {
			condition = *old
			if err := json.Unmarshal(change, &condition); err != nil {
				return nil, err
			}
		}
		conditions = append(conditions, condition)
	}
	return conditions, nil
}
