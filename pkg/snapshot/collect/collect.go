// Package collect takes a snapshot of a running cluster: one LIST a kind, from the API server's cache, in pages. A list that
// the caller may not make is written down, not fatal. Nothing in the cluster is changed.
package collect

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// pageSize is how many objects a page holds. Pages are trimmed and let go as they come.
const pageSize = 5000

// Options say what to look at.
type Options struct {
	// Namespace is that of the job; empty for all. Only its events, claims, quotas and accounts are read.
	Namespace string
	// Name is the job for which probes are made; empty for none.
	Name string
	// Probe asks the API server whether it would accept the missing pods (create with dryRun=All).
	Probe bool
	// Now is the clock.
	Now func() time.Time
}

// Collect takes the snapshot. An unreachable server, or one that does not accept the caller, is an error.
func Collect(ctx context.Context, client *kube.Client, o Options) (*snapshot.Snapshot, error) {
	s := &snapshot.Snapshot{At: o.Now()}
	served, err := discover(client, s)
	if err != nil {
		return nil, err
	}
	c := collector{ctx: ctx, client: client, o: o, s: s}
	for _, r := range append(builtin(), custom(served)...) {
		if err := c.list(r); err != nil {
			return nil, err
		}
	}
	if o.Probe {
		c.probe()
	}
	s.Finish()
	return s, nil
}

// discover asks which kinds the server serves.
func discover(client *kube.Client, s *snapshot.Snapshot) ([]metav1.APIResource, error) {
	version, err := client.Typed.Discovery().ServerVersion()
	if err != nil {
		return nil, failure.Op{Verb: "get", Kind: "server version"}.Wrap(err)
	}
	s.Server.Version = version.GitVersion
	s.Server.Resources = []string{}
	var all []metav1.APIResource
	_, lists, err := client.Typed.Discovery().ServerGroupsAndResources()
	if err != nil && len(lists) == 0 { // one broken aggregated API must not hide all others
		return nil, failure.Op{Verb: "list", Kind: "API resource"}.Wrap(err)
	}
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
			if strings.Contains(gv.Group, ".") && !strings.HasSuffix(gv.Group, ".k8s.io") || slices.Contains(crdGroups, gv.Group) {
				s.Server.Resources = append(s.Server.Resources, resourceName(r.Name, gv.Group)+"/"+gv.Version)
			}
		}
	}
	slices.Sort(s.Server.Resources)
	return all, nil
}

func resourceName(resource, group string) string {
	if group == "" {
		return resource
	}
	return resource + "." + group
}

// resource is one kind to list.
type resource struct {
	gvr schema.GroupVersionResource
	// kind is the word in errors.
	kind string
	// namespaced kinds are listed in the job's namespace only if own is set, else in all.
	namespaced, own bool
	// list makes one request for a page.
	list func(ctx context.Context, client *kube.Client, namespace string, o metav1.ListOptions) (runtime.Object, error)
	// selector is a field selector.
	selector string
}

type collector struct {
	ctx    context.Context
	client *kube.Client
	o      Options
	s      *snapshot.Snapshot
}

// list reads one kind. If it is refused for all namespaces, the job's own is tried.
func (c *collector) list(r resource) error {
	namespace := ""
	if r.own {
		namespace = c.o.Namespace
	}
	err := c.read(r, namespace)
	name := resourceName(r.gvr.Resource, r.gvr.Group)
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err) && r.namespaced && namespace == "" && c.o.Namespace != "":
		denial := snapshot.Denial{Resource: name}
		if own := c.read(r, c.o.Namespace); own == nil {
			denial.ExceptNamespaces = []string{c.o.Namespace}
		} else if !apierrors.IsForbidden(own) {
			return c.wrap(r, c.o.Namespace, own)
		}
		c.s.Denied = append(c.s.Denied, denial)
		return nil
	case apierrors.IsForbidden(err):
		c.s.Denied = append(c.s.Denied, snapshot.Denial{Resource: name})
		return nil
	case apierrors.IsNotFound(err):
		return nil // a kind that this server does not have
	}
	return c.wrap(r, namespace, err)
}

func (c *collector) wrap(r resource, namespace string, err error) error {
	return failure.Op{Verb: "list", Resource: r.gvr, Kind: r.kind, Namespace: namespace}.Wrap(err)
}

// read lists one kind page by page, and keeps of each object what is needed.
func (c *collector) read(r resource, namespace string) error {
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.list(ctx, c.client, namespace, o)
	})
	p.PageSize = pageSize
	options := metav1.ListOptions{ResourceVersion: "0", FieldSelector: r.selector}
	return p.EachListItemWithAlloc(c.ctx, options, func(obj runtime.Object) error {
		trim(obj)
		return c.s.Put(obj)
	})
}

// probe asks whether the API server accepts one pod of the job: the refusal is read first-hand, not from an event.
func (c *collector) probe() {
	for _, pod := range c.wanted() {
		_, err := c.client.Typed.CoreV1().Pods(pod.Namespace).Create(c.ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		p := snapshot.Probe{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, Code: 201}
		if err != nil {
			status := apierrors.APIStatus(nil)
			if s, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // client-go returns it unwrapped
				status = s
			}
			if status == nil || apierrors.IsAlreadyExists(err) || rightsOf(err) {
				continue // nothing was learnt about the pod
			}
			p.Code, p.Reason, p.Message = int(status.Status().Code), string(status.Status().Reason), status.Status().Message
		}
		c.s.Probes = append(c.s.Probes, p)
	}
}

// rightsOf reports whether a refusal is about the caller's own rights: the operator has others.
func rightsOf(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource")
}

// wanted are pods, one a role, that the job lacks.
func (c *collector) wanted() []*corev1.Pod {
	return missing(c.s, c.o.Namespace, c.o.Name)
}
