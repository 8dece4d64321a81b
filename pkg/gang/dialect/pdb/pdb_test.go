package pdb

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestFind(t *testing.T) {
	yes := true
	owned := func(uid string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "team", Name: "j", OwnerReferences: []metav1.OwnerReference{{UID: "x", Controller: &yes, Name: uid}}}
	}
	budget := func(min intstr.IntOrString) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: owned("j"), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &min}}
	}
	pod := &corev1.Pod{ObjectMeta: owned("j"), Spec: corev1.PodSpec{SchedulerName: "kube-batch"}}
	if d, ok := Find(pod, []*policyv1.PodDisruptionBudget{budget(intstr.FromInt32(4))}); !ok || d.MinMember != 4 {
		t.Errorf("got %+v %v", d, ok)
	}
	if d, ok := Find(pod, []*policyv1.PodDisruptionBudget{budget(intstr.FromString("50%"))}); !ok || d.MinMember != 1 {
		t.Errorf("a minimum in percent: got %+v %v", d, ok)
	}
	other := pod.DeepCopy()
	other.Spec.SchedulerName = "default-scheduler"
	if _, ok := Find(other, []*policyv1.PodDisruptionBudget{budget(intstr.FromInt32(4))}); ok {
		t.Error("an ordinary budget was taken for a gang")
	}
	stranger := pod.DeepCopy()
	stranger.OwnerReferences[0].UID = "y"
	if _, ok := Find(stranger, []*policyv1.PodDisruptionBudget{budget(intstr.FromInt32(4))}); ok {
		t.Error("the budget of another job was taken")
	}
}
