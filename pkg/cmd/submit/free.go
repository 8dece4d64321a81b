package submit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// free says what would start now in the cluster, and which queues there are. Who asks can do without: that it cannot be found out is a
// note.
func (o *Options) free(ctx context.Context) (text string, queues []string) {
	note := func(err error) {
		fmt.Fprintf(o.IO.ErrOut, "note: what is free now is not known: %s\n", failure.From(err).Message)
	}
	namespace, err := o.Namespace()
	if err != nil {
		note(err)
		return "", nil
	}
	client, err := o.Client()
	if err != nil {
		note(err)
		return "", nil
	}
	snap, err := collect.Collect(ctx, client, collect.Options{Namespace: namespace, Lean: true, Now: o.IO.Clock.Now})
	if err != nil {
		note(err)
		return "", nil
	}
	var sizes []string
	for _, total := range usage.OfNodes(view.New(snap)).Totals {
		for _, l := range total.Largest {
			if total.Kind == corev1.ResourceName(o.GPUResource) && l.Members > 0 {
				sizes = append(sizes, fmt.Sprintf("%d x %d", l.Members, l.Devices))
			}
		}
	}
	for _, kind := range []schema.GroupKind{{Group: "scheduling.volcano.sh", Kind: "Queue"}, {Group: "kueue.x-k8s.io", Kind: "LocalQueue"}} {
		for _, queue := range snap.Custom[kind] {
			if queue.GetNamespace() == "" || queue.GetNamespace() == namespace {
				queues = append(queues, queue.GetName())
			}
		}
	}
	slices.Sort(queues)
	if len(sizes) == 0 {
		return "no worker with a GPU", queues
	}
	return strings.Join(sizes, ", or ") + " (workers x GPUs)", queues
}
