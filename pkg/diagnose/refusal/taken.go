package refusal

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// TakenBy is the pod, or the Job that would make pods, which has the name that a create was refused for and is none of the gang's. It is nil where there is no such
// object: a controller also creates what it has made itself and does not see yet, and an object that had the name may have gone.
func TakenBy(v *view.View, g *gang.Gang, r Refusal) metav1.Object {
	var named metav1.Object
	switch r.Resource() {
	case "pods":
		for _, p := range v.Snap.Pods {
			if p.Namespace == g.Meta.Namespace && p.Name == r.Object {
				named = p
			}
		}
	case "jobs.batch":
		for _, j := range v.Snap.Jobs {
			if j.Namespace == g.Meta.Namespace && j.Name == r.Object {
				named = j
			}
		}
	}
	if named == nil || v.Makes(g.Job, named) {
		return nil
	}
	return named
}
