package gang

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The pods of a job that has none yet are in its namespace, by which their group is found; templates have no namespace.
func TestPodsOfTemplates(t *testing.T) {
	job := &Job{Meta: metav1.ObjectMeta{Namespace: "team", Name: "llama"}, Roles: []Role{{Name: "Worker", Replicas: 2}}}
	pods := PodsOf(job, nil)
	if len(pods) != 1 || pods[0].Namespace != "team" {
		t.Errorf("got %v", pods)
	}
	if job.Roles[0].Template.Namespace != "" {
		t.Error("the template was changed")
	}
}
