package kubelet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
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
			if err := (terminatingOnly{client}).CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
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
