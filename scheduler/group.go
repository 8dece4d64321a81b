package scheduler

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/scheduler/roster"
	"github.com/gangctl/gangctl/scheduler/virtual"
)

// groupHandler brings PodGroup objects into the roster.
type groupHandler struct {
	roster *roster.Roster
	touch  func(gang.Key)
}

// SetObject implements feed.Handler.
func (h *groupHandler) SetObject(u *unstructured.Unstructured) {
	group, err := schedulerplugins.Decode(u)
	if err != nil {
		klog.Background().Error(err, "Skipping a PodGroup that cannot be read")
		return
	}
	key := gang.Key{Dialect: gang.SchedulerPlugins, Namespace: group.Namespace, Name: group.Name}
	h.roster.SetObject(key, roster.Object{
		UID: group.UID, Created: group.CreationTimestamp, MinMember: schedulerplugins.MinMember(group),
	})
	h.touch(key)
}

// DeleteObject implements feed.Handler.
func (h *groupHandler) DeleteObject(namespace, name string) {
	key := gang.Key{Dialect: gang.SchedulerPlugins, Namespace: namespace, Name: name}
	h.roster.DeleteObject(key)
	h.touch(key)
}

// Reset implements feed.Handler.
func (h *groupHandler) Reset() {
	for _, key := range h.roster.DeleteObjects(gang.SchedulerPlugins) {
		h.touch(key)
	}
}

// decisions keeps the engine's word on a gang, and passes on what is new in it.
type decisions struct {
	store  *virtual.Store
	report func(*schedulingv1beta1.PodGroup)
}

// SetCondition implements intercept.Conditions.
func (d *decisions) SetCondition(namespace, name string, condition metav1.Condition) (*schedulingv1beta1.PodGroup, bool) {
	group, news := d.store.SetCondition(namespace, name, condition)
	if news {
		d.report(group)
	}
	return group, news
}
