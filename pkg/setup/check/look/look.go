// Package look collects the facts that checks judge: one LIST a kind, from the API server's cache, and what only the API server
// can tell. Nothing is changed. What may not be listed is written down, not fatal.
package look

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/setup/check"
)

// Options say what to look at.
type Options struct {
	// Namespace is where the caller wants to run jobs.
	Namespace string
	// Version is the gangctl that looks.
	Version version.Info
	// Shipped are the objects of the gang scheduler's installation.
	Shipped []*unstructured.Unstructured
	// Before looks only at what matters before an installation.
	Before bool
	// Now is the clock.
	Now func() time.Time
}

// never are kinds that no check asks for; idle are those that matter only once gangs run.
var (
	never = []string{"jobs", "replicasets", "resourcequotas", "limitranges", "persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes", "csidrivers",
		"volumeattachments", "priorityclasses", "poddisruptionbudgets", "runtimeclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices", "deviceclasses"}
	// own are read here: checks want of them what other answers do not.
	own  = []string{"nodes", "leases"}
	idle = []string{"pods", "events", "daemonsets", "serviceaccounts"}
)

// Look collects the facts. An unreachable server, or one that does not accept the caller, is an error.
func Look(ctx context.Context, client *kube.Client, o Options) (*check.Facts, error) {
	f := &check.Facts{Version: o.Version, Namespace: o.Namespace, Shipped: o.Shipped, Unseen: map[string]string{}, Denied: map[string]bool{}}
	l := &looker{client: client, o: o, f: f}
	l.clock(ctx)
	without := append(append([]string{}, never...), own...)
	if o.Before {
		without = append(without, idle...)
	}
	var s *snapshot.Snapshot
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		s, err = collect.Collect(groupCtx, client, collect.Options{Without: without, Now: o.Now})
		return err
	})
	for _, read := range l.reads() {
		group.Go(func() error { return read(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, d := range s.Denied {
		f.Unseen[d.Resource], f.Denied[d.Resource] = d.Message, true
	}
	s.Nodes, s.Leases = l.nodes, l.leases
	s.Finish()
	f.World = view.New(s)
	return f, l.reviews(ctx)
}

// reads are what is read besides the snapshot.
func (l *looker) reads() []func(context.Context) error {
	reads := []func(context.Context) error{l.definitions, l.clusterRoles, l.roles, l.ready}
	if !l.o.Before {
		reads = append(reads, l.clusterRoleBindings, l.roleBindings, l.listNodes, l.listLeases)
	}
	return reads
}
