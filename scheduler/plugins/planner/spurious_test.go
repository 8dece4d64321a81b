package planner

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/gangctl/gangctl/internal/poll"
)

// The members of a gang request a volume whose claim is being deleted. A later error of the engine does not replace its message for that.
func TestAGangThatIsRefusedBeforeAllElse(t *testing.T) {
	r := newRig(t, func(r *rig, _ *schedulerconfig.KubeSchedulerProfile) {
		now := metav1.Now()
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", DeletionTimestamp: &now, Finalizers: []string{"in-use"}}}
		r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), claim, "default"))
	})
	r.node("n1")
	r.gang("g", 2)
	for i := range 2 {
		r.create(claiming(member("g", i, "cpu", "1"), "data"))
	}
	for i := range 2 {
		poll.Until(r, "every member names the volume", func() bool {
			text := r.message(fmt.Sprintf("g-%d", i))
			return strings.Contains(text, `persistentvolumeclaim "data" is being deleted`) && !Spurious(text)
		})
	}
	r.parked("g") // and it is not tried again and again
	group := types.NamespacedName{Namespace: "default", Name: "g"}
	if reason, ok := r.reasons.LastReported(group); !ok || !strings.Contains(reason.Finding.Message, `persistentvolumeclaim "data" is being deleted`) {
		t.Errorf("reported %+v, %v", reason, ok)
	}
}

func TestSpurious(t *testing.T) {
	p := &Planner{Attempts: &Attempts{current: &cycle{group: types.NamespacedName{Name: "g"}}}}
	fault := fwk.AsStatus(errors.New(spurious))
	if got := p.cleared(p.current.group, fault); !got.IsRejected() || got.Message() != "members that its gang needs have gone" {
		t.Errorf("fewer members than the minimum: %v", got)
	}
	for name, status := range map[string]*fwk.Status{
		"another fault": fwk.AsStatus(errors.New("away")), "refused": fwk.NewStatus(fwk.Unschedulable, spurious), "placed": nil,
	} {
		if got := p.cleared(p.current.group, status); got != status {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := p.cleared(types.NamespacedName{Name: "other"}, fault); got != fault {
		t.Errorf("another gang's: %v", got)
	}
}
