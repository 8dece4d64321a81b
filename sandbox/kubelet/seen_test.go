package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// A kubelet that is late does not delete the next pod of a name.
func TestOnlyTerminatingPodsAreDeleted(t *testing.T) {
	ended := metav1.NewTime(time.Unix(1, 0))
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want string // the UID that is deleted
	}{
		"it is being deleted": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", UID: "1", DeletionTimestamp: &ended, Finalizers: []string{"example.com/kept"},
		}}, "1"},
		"another one has its name": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "2"}}, ""},
		"it is gone":               {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(tt.pod)
			if err := (seenOnly{client, clock.RealClock{}}).CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, action := range client.Actions() {
				if d, ok := action.(clienttesting.DeleteActionImpl); ok {
					got = string(*d.DeleteOptions.Preconditions.UID)
				}
			}
			if got != tt.want {
				t.Errorf("deleted the pod with UID %q, want %q", got, tt.want)
			}
		})
	}
}

// A change of a pod that is another one by now is not made, and KWOK sees the pod again.
func TestRefusedChangeIsMadeAgain(t *testing.T) {
	client := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}})
	client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetSubresource() == "status", nil, apierrors.NewConflict(corev1.Resource("pods"), "p", nil)
	})
	pods := (seenOnly{client, clocktesting.NewFakePassiveClock(now)}).CoreV1().Pods("ns")
	if _, err := pods.Patch(t.Context(), "p", types.StrategicMergePatchType, []byte(`{"metadata":{"resourceVersion":"7"}}`), metav1.PatchOptions{}, "status"); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	pod, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil || pod.Annotations[SeenAgainAnnotation] != "2026-01-02T03:04:05Z" {
		t.Errorf("got %v, %v", pod.Annotations, err)
	}
}
