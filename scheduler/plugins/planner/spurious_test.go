package planner

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/gangctl/gangctl/internal/poll"
)

// The members of a gang request a volume that does not exist. A later error of the engine does not replace its message for that.
func TestAGangThatIsRefusedBeforeAllElse(t *testing.T) {
	r := newRig(t)
	r.node("n1")
	r.gang("g", 2)
	for i := range 2 {
		p := member("g", i, "cpu", "1")
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
		r.create(p)
	}
	for i := range 2 {
		poll.Until(r, "every member names the missing volume", func() bool {
			text := r.message(fmt.Sprintf("g-%d", i))
			return strings.Contains(text, `persistentvolumeclaim "data" not found`) && !Spurious(text)
		})
	}
	r.parked("g") // and it is not tried again and again
	group := types.NamespacedName{Namespace: "default", Name: "g"}
	if reason, ok := r.reasons.LastReported(group); !ok || !strings.Contains(reason.Finding.Message, `persistentvolumeclaim "data" not found`) {
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
