package diagnose

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// The answer about a gang of several jobs is about the job that was named, and says where its members are changed.
func TestAnswerOfJobsThatShareAGroup(t *testing.T) {
	c := clustertest.New()
	c.Nodes(4, 8).Runs("a", 8, "n1")
	for _, name := range []string{"actor", "learner"} {
		c.Add(clustertest.Gang{Name: name, Kind: "PyTorchJob", Workers: 2, GPUs: 8, Pod: func(_ int, p *corev1.Pod) { p.Labels["scheduling.x-k8s.io/pod-group"] = "pair" }})
	}
	groups := schema.GroupKind{Group: "scheduling.x-k8s.io", Kind: "PodGroup"}
	kept := c.S.Custom[groups][:1]
	kept[0].Object["metadata"] = map[string]any{"namespace": "team", "name": "pair"}
	kept[0].Object["spec"] = map[string]any{"minMember": int64(4)}
	c.S.Custom[groups] = kept
	a, err := Explain(context.Background(), c.Done(), Query{Namespace: "team", Kind: "pytorchjob", Name: "actor"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Job.Kind != "PyTorchJob" || a.Job.Name != "actor" || a.Primary == nil || a.Primary.Code != answer.NodesBusy || a.Gang.MinMember != 4 {
		t.Errorf("got an answer about %s %s, %+v, of %d members", a.Job.Kind, a.Job.Name, a.Primary, a.Gang.MinMember)
	}
	waits := false
	for _, x := range a.Unblock {
		waits = waits || x.Kind == answer.Wait
		if x.By == answer.User && x.How != "change it in the jobs that make its members, which start together" {
			t.Errorf("%q is done by %q %q", x.Text, x.Command, x.How)
		}
	}
	if !waits {
		t.Errorf("no end of a job helps: %+v", a.Unblock)
	}
}
