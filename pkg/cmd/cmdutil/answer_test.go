package cmdutil

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cluster/jobs"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/submit/render"
)

func jobOf(t *testing.T, object runtime.Object) *gang.Job {
	t.Helper()
	job, err := jobs.Read(kubetest.Stored(t, object))
	if err != nil {
		t.Fatal(err)
	}
	return job
}

// One line, with the verdict, of a cluster that has no node at all.
func TestWhyPending(t *testing.T) {
	job, err := render.Unstructured(kubetest.Job("research", "llama", 1))
	if err != nil {
		t.Fatal(err)
	}
	s := &snapshot.Snapshot{Pods: []*corev1.Pod{kubetest.Pod("research", "llama", 0, "", "0/0 nodes are available")},
		Custom: map[schema.GroupKind][]*unstructured.Unstructured{{Group: "kubeflow.org", Kind: "TFJob"}: {job}}}
	client, err := kubetest.Serve(t, s).Client()
	if err != nil {
		t.Fatal(err)
	}
	now := clocktesting.NewFakeClock(kubetest.Created.Time).Now
	line, err := WhyPendingLine(client, now)(t.Context(), jobOf(t, kubetest.Job("research", "llama", 1)))
	if err != nil || !strings.Contains(line, "llama: ") || strings.ToUpper(strings.Fields(line)[0]) != strings.Fields(line)[0] || strings.Contains(line, "\n") {
		t.Errorf("got %q, %v", line, err)
	}
	if _, err := WhyPendingLine(client, now)(t.Context(), jobOf(t, kubetest.Job("research", "zephyr", 1))); err == nil {
		t.Error("a job that is not there has an answer")
	}
}
