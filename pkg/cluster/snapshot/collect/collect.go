// Package collect takes a snapshot of a running cluster: one LIST a kind, from the API server's cache, in pages. A list that
// the caller may not make is written down, not fatal. Nothing in the cluster is changed.
package collect

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang/kind"
)

// Options are the query and the limits of a collection.
type Options struct {
	// Namespace is that of the job; empty for all. Only its events, claims, quotas and accounts are read.
	Namespace string
	// Kind and Name are the job, or the pod of one, of the query, as they were typed; an empty name is none. Of its pods
	// everything is kept, and probes are made for it.
	Kind, Name string
	// Probe tries whether the API server would accept the missing pods (create with dryRun=All).
	Probe bool
	// Without are resources that are not read, by plural name: the caller has them already, or can do without.
	Without []string
	// Now is the clock.
	Now func() time.Time
	// Poll is how long a mirror lets a list stand that may not be watched; a few seconds if it is zero.
	Poll time.Duration
	// Count, if set, counts the objects that have been read, while they are.
	Count *atomic.Int64
}

// Collect takes the snapshot. An unreachable server, or one that does not accept the caller, is an error.
func Collect(ctx context.Context, client *kube.Client, o Options) (*snapshot.Snapshot, error) {
	s := &snapshot.Snapshot{At: o.Now()}
	// First and alone: it opens the connection that all others share, and gives the best error if there is none.
	release, err := client.Release(ctx)
	if err != nil {
		return nil, err
	}
	s.Server.Version = release
	c := &collector{client: client, o: o, s: s}
	if err := c.lists(ctx); err != nil {
		return nil, err
	}
	if o.Probe {
		if err := newProber(client, s).pods(ctx, missing(s, view.Query{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name})); err != nil {
			return nil, err
		}
	}
	caller(ctx, client, s)
	s.Finish()
	return s, nil
}

// prefix is the common prefix of the names of the job of the query, of its pods and of what owns them.
func (o Options) prefix() string {
	prefix := o.Name
	if !kind.MeansPod(o.Kind) {
		return prefix
	}
	for range 2 { // JOB-ROLE-INDEX, or JOB-RANDOM
		if i := strings.LastIndexByte(prefix, '-'); i > 0 {
			prefix = prefix[:i]
		}
	}
	return prefix
}

// lists reads every kind, some at the same time. The built-in ones do not wait for discovery.
func (c *collector) lists(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	slots := make(chan struct{}, atOnce)
	read := func(r resource) {
		group.Go(func() error {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			defer func() { <-slots }()
			return c.list(ctx, r)
		})
	}
	for _, r := range builtin() {
		if !slices.Contains(c.o.Without, r.gvr.Resource) {
			read(r)
		}
	}
	group.Go(func() error {
		served, err := discover(c.client, c.s)
		for _, r := range custom(served) {
			read(r)
		}
		return err
	})
	return group.Wait()
}

// discover reads which kinds the server serves.
func discover(client *kube.Client, s *snapshot.Snapshot) ([]metav1.APIResource, error) {
	s.Server.Resources = []string{}
	var all []metav1.APIResource
	groups, lists, err := client.Typed.Discovery().ServerGroupsAndResources()
	if err != nil && len(lists) == 0 { // one broken aggregated API must not hide all others
		return nil, failure.Op{Verb: "list", Kind: "API resource"}.Wrap(err)
	}
	sortByPreference(groups, lists)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue
			}
			r.Group, r.Version = gv.Group, gv.Version
			all = append(all, r)
			if strings.Contains(gv.Group, ".") && !strings.HasSuffix(gv.Group, ".k8s.io") || slices.Contains(crdGroups, gv.Group) || declaresGangs(schema.GroupKind{Group: gv.Group, Kind: r.Kind}) {
				s.Server.Resources = append(s.Server.Resources, resourceName(r.Name, gv.Group)+"/"+gv.Version)
			}
		}
	}
	slices.Sort(s.Server.Resources)
	return all, nil
}

// sortByPreference sorts what each version of a group serves as the server prefers the versions. Discovery returns these lists in random order.
func sortByPreference(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) {
	rank := map[string]int{}
	for _, group := range groups {
		for _, version := range append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...) {
			if _, known := rank[version.GroupVersion]; !known {
				rank[version.GroupVersion] = len(rank)
			}
		}
	}
	slices.SortStableFunc(lists, func(a, b *metav1.APIResourceList) int { return cmp.Compare(rank[a.GroupVersion], rank[b.GroupVersion]) })
}

func resourceName(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// collector reads the lists of one snapshot.
type collector struct {
	client *kube.Client
	o      Options
	// mu guards s while lists are read.
	mu sync.Mutex
	s  *snapshot.Snapshot
}

// Read implements --from: it opens the snapshot in a file, - being in, and where from is empty it collects one from the
// cluster. The client that it collects with is returned; for a file none is made, and it is nil.
func Read(ctx context.Context, from string, in io.Reader, client func() (*kube.Client, error), o Options) (*snapshot.Snapshot, *kube.Client, error) {
	if from != "" {
		s, err := snapshot.Open(ctx, from, in)
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
		if err != nil {
			return nil, nil, failure.Errorf("%w", err).WithHint("a snapshot is what `gangctl why-pending --save FILE` or `kubectl get … -o yaml` writes")
		}
		return s, nil, nil
	}
	c, err := client()
	if err != nil {
		return nil, nil, err
	}
	s, err := Collect(ctx, c, o)
	return s, c, err
}
