package collect

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/page"
)

const (
	// pageSize is how many objects a page holds, where the API server respects it. One that serves from its cache may send all.
	pageSize = 5000
	// atOnce is how many lists are read at the same time. One of them is far longer than the others, those of pods: it takes as
	// long as all.
	atOnce = 4
)

// protobufOrJSON is the Accept header of requests: JSON where the server, or one that it stands before, cannot.
const protobufOrJSON = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

// resource is one kind to list.
type resource struct {
	gvr schema.GroupVersionResource
	// kind is the kind's name in errors.
	kind string
	// namespaced kinds are listed in the job's namespace only if own is set, else in all.
	namespaced, own bool
	// selector is a field selector, labels a label selector.
	selector, labels string
	// accept is the encoding that is requested.
	accept string
	// decode returns what decodes the objects of one list.
	decode func(Options) (decoder, error)
}

// path is where the kind is listed.
func (r resource) path(namespace string) string {
	parts := []string{"/apis", r.gvr.Group, r.gvr.Version}
	if r.gvr.Group == "" {
		parts = []string{"/api", r.gvr.Version}
	}
	if namespace != "" {
		parts = append(parts, "namespaces", namespace)
	}
	return path.Join(append(parts, r.gvr.Resource)...)
}

// listed is the outcome of reading one kind.
type listed struct {
	objects []runtime.Object
	// version is the resource version as of which they are.
	version string
	// namespace is where they were read; empty for all namespaces.
	namespace string
	// denial is set where only a part of the list could be read. If it names no exceptions, nothing could.
	denial *snapshot.Denial
	// unserved is set for a kind that the server does not have.
	unserved bool
}

// absent reports that nothing could be read: that was refused, or is not served.
func (l listed) absent() bool {
	return l.unserved || l.denial != nil && len(l.denial.ExceptNamespaces) == 0
}

// list reads one kind into the snapshot.
func (c *collector) list(ctx context.Context, r resource) error {
	found, err := c.look(ctx, r)
	if err != nil {
		return err
	}
	if found.denial != nil {
		c.deny(*found.denial)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, obj := range found.objects {
		if err := c.s.Put(obj); err != nil {
			return err
		}
	}
	return nil
}

// look reads one kind. If it is refused for all namespaces, the job's own is tried.
func (c *collector) look(ctx context.Context, r resource) (found listed, err error) {
	if r.own {
		found.namespace = c.o.Namespace
	}
	found.objects, found.version, err = c.read(ctx, r, found.namespace)
	name := resourceName(r.gvr.Resource, r.gvr.Group)
	switch {
	case err == nil:
		return found, nil
	case apierrors.IsForbidden(err) && r.namespaced && found.namespace == "" && c.o.Namespace != "":
		found.denial = &snapshot.Denial{Resource: name, Message: refusalMessage(err)}
		objects, version, own := c.read(ctx, r, c.o.Namespace)
		switch {
		case own == nil:
			found.denial.ExceptNamespaces = []string{c.o.Namespace}
			found.objects, found.version, found.namespace = objects, version, c.o.Namespace
		case !apierrors.IsForbidden(own):
			return found, wrap(r, c.o.Namespace, own)
		default:
			found.denial.Message = refusalMessage(own) // the narrower right is the one worth granting
		}
		return found, nil
	case apierrors.IsForbidden(err):
		found.denial = &snapshot.Denial{Resource: name, Message: refusalMessage(err)}
		return found, nil
	case apierrors.IsNotFound(err):
		found.unserved = true
		return found, nil
	}
	return found, wrap(r, found.namespace, err)
}

// deny writes a refusal down; the order is that of the names, not that of the answers.
func (c *collector) deny(d snapshot.Denial) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, _ := slices.BinarySearchFunc(c.s.Denied, d, func(a, b snapshot.Denial) int { return strings.Compare(a.Resource, b.Resource) })
	c.s.Denied = slices.Insert(c.s.Denied, at, d)
}

func wrap(r resource, namespace string, err error) error {
	return failure.Op{Verb: "list", Resource: r.gvr, Kind: r.kind, Namespace: namespace}.Wrap(err)
}

// read lists one kind, and keeps of each object what is needed.
func (c *collector) read(ctx context.Context, r resource, namespace string) (objects []runtime.Object, version string, err error) {
	decode, err := r.decode(c.o)
	if err != nil {
		return nil, "", err
	}
	return readList(ctx, c, r, namespace, decode)
}

// readList lists one kind page by page, and returns what its objects are decoded to. The version is that of the first page: who watches from
// there misses no change.
func readList[T any](ctx context.Context, c *collector, r resource, namespace string, decode func(page.Item) (T, error)) (all []T, version string, err error) {
	add := func(item page.Item) error {
		obj, err := decode(item)
		all = append(all, obj)
		c.count(1)
		return err
	}
	options := metav1.ListOptions{ResourceVersion: "0", Limit: pageSize, FieldSelector: r.selector, LabelSelector: r.labels}
	err = paging.Each(ctx, options, func(ctx context.Context, o metav1.ListOptions) (*metav1.ListMeta, error) {
		return c.page(ctx, r, namespace, o, add)
	}, func() {
		c.count(-len(all))
		all, version = nil, ""
	}, func(meta *metav1.ListMeta) { version = cmp.Or(version, meta.ResourceVersion) })
	return all, version, err
}

// count counts objects that were read, where that is shown.
func (c *collector) count(n int) {
	if c.o.Count != nil {
		c.o.Count.Add(int64(n))
	}
}

func (c *collector) page(ctx context.Context, r resource, namespace string, o metav1.ListOptions, f func(page.Item) error) (*metav1.ListMeta, error) {
	body, err := c.client.Typed.CoreV1().RESTClient().Get().AbsPath(r.path(namespace)).VersionedParams(&o, metav1.ParameterCodec).SetHeader("Accept", r.accept).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	meta, err := page.Read(body, f)
	return &meta, err
}
