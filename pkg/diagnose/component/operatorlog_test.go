package component

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
)

// Of two operators of one kind the log is that of the one which handles the version of the job.
func TestOperatorLogIsOfTheVersion(t *testing.T) {
	for version, want := range map[string]string{"v1": "deployment/training-operator", "v2beta1": "deployment/mpi-operator"} {
		c := clustertest.New()
		c.Deployment("mpi-operator", "mpi-operator", "mpioperator/mpi-operator:0.6.0")
		g := &gang.Gang{Job: &gang.Job{Kind: mpijob.Reader().WithVersion(version), Reader: mpijob.Reader(), Meta: metav1.ObjectMeta{Namespace: "team", Name: "llama"}}}
		if got := OperatorLog(view.New(c.Done()), g); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
	}
}
