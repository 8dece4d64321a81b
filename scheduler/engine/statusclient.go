package engine

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

// ConditionSink receives the conditions that the engine sets on virtual groups.
type ConditionSink interface {
	// GroupCondition returns the condition of a type that a group has; nil for none.
	GroupCondition(namespace, name, kind string) *metav1.Condition
	// SetCondition records a condition; group is nil where there is no such group.
	SetCondition(namespace, name string, condition metav1.Condition) (group *schedulingv1beta1.PodGroup, changed bool)
}

// StatusClient wraps a clientset so that status patches of PodGroups go to a sink:
// virtual groups exist only inside the scheduler, not on the API server. All other requests pass through.
func StatusClient(client kubernetes.Interface, sink ConditionSink) kubernetes.Interface {
	return &statusClientset{Interface: client, sink: sink}
}

type statusClientset struct {
	kubernetes.Interface
	sink ConditionSink
}

// IsWatchListSemanticsUnSupported reports what the wrapped client does: whether
// informers must list before they watch. The name is client-go's, which looks for
// it in clients that keep objects in memory.
func (c *statusClientset) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(c.Interface)
}

// SchedulingV1beta1 implements kubernetes.Interface.
func (c *statusClientset) SchedulingV1beta1() typedv1beta1.SchedulingV1beta1Interface {
	return &statusScheduling{SchedulingV1beta1Interface: c.Interface.SchedulingV1beta1(), sink: c.sink}
}

type statusScheduling struct {
	typedv1beta1.SchedulingV1beta1Interface
	sink ConditionSink
}

// PodGroups implements typedv1beta1.SchedulingV1beta1Interface.
func (s *statusScheduling) PodGroups(namespace string) typedv1beta1.PodGroupInterface {
	return &statusPodGroups{PodGroupInterface: s.SchedulingV1beta1Interface.PodGroups(namespace), namespace: namespace, sink: s.sink}
}

type statusPodGroups struct {
	typedv1beta1.PodGroupInterface
	namespace string
	sink      ConditionSink
}

// Patch implements typedv1beta1.PodGroupInterface. The engine patches nothing
// but conditions; anything else is refused rather than dropped.
func (p *statusPodGroups) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions, subresources ...string) (*schedulingv1beta1.PodGroup, error) {
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

// patched returns the conditions that a patch results in. It is a strategic merge
// patch: of a condition that the group has, it contains the fields that change.
func (p *statusPodGroups) patched(name string, data []byte) ([]metav1.Condition, error) {
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
