package jobs

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// maxRuntimes is how many runtimes are read for the jobs of a list.
const maxRuntimes = 20

// Foresee gives TrainJobs of which their controller has made no JobSet yet the members that it will have: a runtime has how many they are, their gang and
// their scheduler. It is read once for all its jobs; where it cannot be read, they keep what they have themselves.
func Foresee(ctx context.Context, client *kube.Client, all []*gang.Job) {
	type runtime struct{ namespace, kind, name string }
	read := map[runtime]*unstructured.Unstructured{}
	for _, job := range all {
		if job.Reader.GroupKind != trainjob.Reader().GroupKind || job.Made != nil || job.End != nil || job.Object == nil {
			continue
		}
		kind, name, err := trainjob.RuntimeOf(job.Object)
		if err != nil || name == "" {
			continue // which why-pending reports
		}
		key := runtime{job.Meta.Namespace, kind, name}
		if kind == trainjob.ClusterRuntimeKind {
			key.namespace = ""
		}
		from, known := read[key]
		if !known && len(read) < maxRuntimes {
			from, err = client.Dynamic.Resource(trainjob.RuntimeResource(kind)).Namespace(key.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				from = nil
			}
			read[key] = from
		}
		if from != nil {
			trainjob.Foresee(job, from)
		}
	}
}
