package explainer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/gang"
)

// The event of a gang that waits for one of another namespace names neither that namespace, nor the job, nor its pods, in any of its
// fields, unless names are allowed.
func TestAPublishedAnswerNamesNothingOfOtherNamespaces(t *testing.T) {
	for _, names := range []audience.Policy{audience.Hidden, audience.Named} {
		client := fake.NewClientset()
		play(t, func(t *testing.T, s *fixture) {
			s.Touch(key)
			pass(2 * debounce)
		}, func(s *fixture) {
			rival := clustertest.Gang{Namespace: "secret", Name: "bert", Workers: 2, GPUs: 4, Nodes: []string{"n1", "n2"}, Age: time.Hour}
			s.snap = clustertest.New().Nodes(2, 4).Add(rival).Add(clustertest.Gang{Name: "gang", Workers: 2, GPUs: 4}).Done()
			s.Members = func(k gang.Key) (pods []*corev1.Pod) { return inNamespace(s.snap.Pods, k.Namespace) }
			s.Names, s.Publish = names, publisher(client).Publish
		})
		events, err := client.CoreV1().Events("team").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(events.Items) != 1 {
			t.Fatalf("%d events, %v", len(events.Items), err)
		}
		raw, err := json.Marshal(events.Items[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"secret", "bert"} {
			if got := strings.Contains(string(raw), name); got != bool(names) {
				t.Errorf("foreignNames %v: %q in it: %v\n%s", names, name, got, raw)
			}
		}
		if text := "a TFJob of another namespace (8 GPUs, priority 0)"; strings.Contains(string(raw), text) == bool(names) {
			t.Errorf("foreignNames %v: %q is or is not in\n%s", names, text, raw)
		}
	}
}

func inNamespace(pods []*corev1.Pod, namespace string) (its []*corev1.Pod) {
	for _, pod := range pods {
		if pod.Namespace == namespace {
			its = append(its, pod)
		}
	}
	return its
}
