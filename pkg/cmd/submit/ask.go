package submit

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/submit/choose"
)

// ask finds out what plans depend on: what is served and, where the cluster decides on the dialect, which schedulers run. It asks
// for no more than one of them needs.
func (s *Submission) ask(ctx context.Context, client *kube.Client, plans []plan) (choose.Facts, error) {
	var f choose.Facts
	if !slices.ContainsFunc(plans, plan.asks) {
		return f, nil
	}
	// First and alone: it opens the connection, and tells best why there is none.
	var err error
	if f.Served, err = discover(ctx, client); err != nil || !slices.ContainsFunc(plans, plan.auto) {
		return f, err
	}
	snap := &snapshot.Snapshot{At: s.IO.Clock.Now()}
	blind := make([]string, 2)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		list, err := client.Typed.AppsV1().Deployments("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil {
			snap.Deployments = pointers(list.Items)
		}
		blind[0], err = seen("Deployment", err)
		return err
	})
	group.Go(func() (err error) {
		// Not of nodes: there is one a node, and none of them tells of a scheduler.
		options := metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.namespace!=" + corev1.NamespaceNodeLease}
		list, err := client.Typed.CoordinationV1().Leases("").List(ctx, options)
		if err == nil {
			snap.Leases = pointers(list.Items)
		}
		blind[1], err = seen("Lease", err)
		return err
	})
	if err := group.Wait(); err != nil {
		return f, err
	}
	f.Blind = strings.Join(slices.DeleteFunc(blind, func(s string) bool { return s == "" }), ", ")
	snap.Finish()
	f.World = view.New(snap)
	return f, nil
}

func pointers[T appsv1.Deployment | coordinationv1.Lease](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// seen says why a list cannot be seen: one that may not be read is no error, only less to go by.
func seen(kind string, err error) (blind string, failed error) {
	if apierrors.IsForbidden(err) {
		return strings.ToLower(kind) + "s may not be listed", nil
	}
	return "", failure.Op{Verb: "list", Kind: kind}.Wrap(err)
}

// interesting are the API groups of which it matters what they serve.
func interesting(group string) bool {
	if group == kueue.Group || group == mpijob.Reader().Group {
		return true
	}
	for _, w := range dialect.Writers() {
		for _, gv := range w.Versions {
			if gv.Group == group {
				return true
			}
		}
	}
	return false
}

// accepted asks for everything that is served in one answer, which API servers give since 1.26; others name their groups.
const accepted = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

// discover asks which resources the API server serves in the groups that matter, as RESOURCE.GROUP/VERSION.
func discover(ctx context.Context, client *kube.Client) ([]string, error) {
	op := failure.Op{Verb: "list", Kind: "API resource"}
	raw, err := get(ctx, client, accepted, "/apis")
	if err != nil {
		return nil, op.Wrap(err)
	}
	var all apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, op.Wrap(err)
	}
	if all.Kind != "APIGroupDiscoveryList" {
		return discoverGroups(ctx, client, raw)
	}
	var served []string
	for _, group := range all.Items {
		if !interesting(group.Name) {
			continue
		}
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				served = append(served, r.Resource+"."+group.Name+"/"+version.Version)
			}
		}
	}
	return served, nil
}

// get returns what is at a path.
func get(ctx context.Context, client *kube.Client, accept string, path ...string) ([]byte, error) {
	result := client.Typed.CoreV1().RESTClient().Get().AbsPath(path...).SetHeader("Accept", accept).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err // in the server's words, which Raw does not read
	}
	return result.Raw()
}

// discoverGroups is discover where the server answered with its groups only.
func discoverGroups(ctx context.Context, client *kube.Client, raw []byte) ([]string, error) {
	op := failure.Op{Verb: "list", Kind: "API resource"}
	var groups metav1.APIGroupList
	if err := json.Unmarshal(raw, &groups); err != nil {
		return nil, op.Wrap(err)
	}
	var served []string
	for _, group := range groups.Groups {
		if !interesting(group.Name) {
			continue
		}
		for _, version := range group.Versions {
			var list metav1.APIResourceList
			raw, err := get(ctx, client, "application/json", "/apis", group.Name, version.Version)
			if err == nil {
				err = json.Unmarshal(raw, &list)
			}
			if err != nil {
				return nil, op.Wrap(err)
			}
			for _, r := range list.APIResources {
				if !strings.Contains(r.Name, "/") {
					served = append(served, r.Name+"."+group.Name+"/"+version.Version)
				}
			}
		}
	}
	return served, nil
}
