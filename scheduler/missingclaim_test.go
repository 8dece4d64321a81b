package scheduler

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/gangctl/gangctl/internal/poll"
)

// mounting has a pod mount PersistentVolumeClaims.
func mounting(claims ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for _, name := range claims {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
			}})
		}
	}
}

// Volumes that do not exist are reported of the gang, by an event and its condition, whether all of its members mount them or one does.
func TestVolumesThatDoNotExistAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		claims map[string][]string // by member
		want   string
	}{
		"of all":  {map[string][]string{"a": {"data"}, "b": {"data"}, "c": {"data"}}, "PVC_UNBOUND: 0 of the 3 members that the gang needs fit: PersistentVolumeClaim data does not exist; "},
		"of one":  {map[string][]string{"a": {"data"}, "b": nil, "c": nil}, "PVC_UNBOUND: 2 of the 3 members that the gang needs fit: PersistentVolumeClaim data does not exist; "},
		"several": {map[string][]string{"a": nil, "b": {"x"}, "c": {"y"}}, "PVC_UNBOUND: 1 of the 3 members that the gang needs fit: 2 PersistentVolumeClaims do not exist: x, y; "},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.node("n1", 8)
			r.startWhole()
			for _, member := range []string{"a", "b", "c"} {
				r.create(r.pod(member, DefaultName, mounting(c.claims[member]...), labelled("llama", 3)))
			}
			var event string
			poll.Until(t, "the gang has an event", func() bool {
				select {
				case event = <-r.events:
					return true
				default:
					return false
				}
			})
			if !strings.HasPrefix(event, "Warning Unschedulable "+c.want) {
				t.Errorf("event %q, want %q", event, c.want)
			}
			group, _ := r.virtualGroups.Get(namespace, llama.VirtualName())
			condition := apimeta.FindStatusCondition(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
			if condition == nil || !strings.HasPrefix(condition.Message, c.want) {
				t.Errorf("condition %+v, want %q", condition, c.want)
			}
		})
	}
}
