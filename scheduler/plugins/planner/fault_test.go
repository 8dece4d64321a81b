package planner

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// A binding that fails late is of the attempt before, and says nothing about the one that goes on.
func TestABindingOfTheAttemptBeforeFails(t *testing.T) {
	d := newDesk()
	d.begin(queued(t, member("g", 1), member("g", 2)))
	broken := fwk.AsStatus(errors.New("the server says no"))
	if got := d.failed(member("g", 0), broken, nil); got != broken || d.now.faulty {
		t.Errorf("status %v, faulty %v, for a member that is not tried", got, d.now.faulty)
	}
	if d.failed(member("g", 1), broken, nil); !d.now.faulty {
		t.Error("a fault of the attempt itself does not count")
	}
}

// A gang that may have room when nothing is kept from it any more is tried then, whatever else it may wait for: here its volume is
// where no node is, which may change without bringing room.
func TestAClaimEndsAndAVolumeIsMissing(t *testing.T) {
	r := newRig(t, withClaims("n1", "2"))
	r.eventually("volumes are watched", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.watched["persistentvolumes"] && r.watched["persistentvolumeclaims"]
	})
	r.node("n1", "nvidia.com/gpu", "2")
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"elsewhere"}}},
	}}}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "missing"}
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "missing", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}}
	pvc.Spec.VolumeName, pvc.Status.Phase = "v", corev1.ClaimBound
	r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), pv, ""))
	r.must(r.api.Create(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), pvc, "default"))
	r.gang("g", 1)
	r.create(lacking(member("g", 0, "nvidia.com/gpu", "2")))
	r.parked("g")
	tried := r.tried("g")
	r.unclaim()
	r.eventually("the gang is tried", func() bool { return r.tried("g") > tried })
}
