package refusal

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// TakenBy is the pod, or the Job that would make pods, which has the name that a create was refused for and is none of the gang's. It is nil where there is no such
// object: a controller also creates what it has made itself and does not see yet, and an object that had the name may have gone, or is about to. It is
// looked for in the cluster as it is, also where another one is assumed.
func TakenBy(v *view.View, g *gang.Gang, r Refusal) metav1.Object {
	v = v.Present()
	switch r.Resource() {
	case "pods":
		if p := v.Pod(g.Meta.Namespace, r.Object); p != nil && (p.DeletionTimestamp == nil || view.Stuck(p, v.Now)) && !v.Makes(g.Job, p) {
			return p
		}
	case "jobs.batch":
		if j := v.BatchJob(g.Meta.Namespace, r.Object); j != nil && j.DeletionTimestamp == nil && !v.Makes(g.Job, j) {
			return j
		}
	}
	return nil
}
