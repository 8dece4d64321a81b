package watch

import (
	"cmp"
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/gangctl/gangctl/pkg/cluster/jobs"
)

// jobs lists and watches the one job.
func (f *Follower) jobs() cache.ListerWatcher {
	client := f.Client.Dynamic.Resource(f.Job.Resource()).Namespace(f.Job.Meta.Namespace)
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, f.Job.Meta.Name).String()
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = only
			list, err := client.List(ctx, o)
			return list, f.reached(ctx, f.jobOp(), err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = only
			w, err := client.Watch(ctx, o)
			return w, f.reached(ctx, f.jobOp(), err)
		},
	}, f.Client.Dynamic)
}

// pods lists and watches the pods that carry the job's name. An older job of the same name may still have some.
func (f *Follower) pods() cache.ListerWatcher {
	client := f.Client.Typed.CoreV1().Pods(f.Job.Meta.Namespace)
	only := cmp.Or(f.PodSelector, jobs.PodSelector(f.Job, nil))
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = only
			list, err := client.List(ctx, o)
			return list, f.reached(ctx, f.podOp(), err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = only
			w, err := client.Watch(ctx, o)
			return w, f.reached(ctx, f.podOp(), err)
		},
	}, f.Client.Typed)
}
