package look

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/setup/check"
)

// looker reads the facts of one run.
type looker struct {
	client *kube.Client
	o      Options
	// mu guards f while lists are read.
	mu     sync.Mutex
	f      *check.Facts
	nodes  []*corev1.Node
	leases []*coordinationv1.Lease
}

// each lists a kind from the API server's cache. That the caller may not, or that the server cannot, is written down under the
// kind's name; only what concerns all requests is an error.
func each[T runtime.Object](ctx context.Context, l *looker, resource string, list func(context.Context, metav1.ListOptions) (runtime.Object, error), keep func(T)) error {
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) })
	err := p.EachListItem(ctx, metav1.ListOptions{ResourceVersion: "0"}, func(obj runtime.Object) error {
		if typed, ok := obj.(T); ok {
			keep(typed)
		}
		return nil
	})
	return l.note(resource, err)
}

// note writes down that a kind could not be listed.
func (l *looker) note(resource string, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err), !errors.As(err, &status):
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.f.Unseen[resource], l.f.Denied[resource] = status.Status().Message, apierrors.IsForbidden(err)
	return nil
}

func (l *looker) clusterRoles(ctx context.Context) error {
	return each(ctx, l, "clusterroles."+rbacv1.GroupName, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.Typed.RbacV1().ClusterRoles().List(ctx, o)
	}, func(r *rbacv1.ClusterRole) { l.f.Book.ClusterRoles = append(l.f.Book.ClusterRoles, r) })
}

func (l *looker) clusterRoleBindings(ctx context.Context) error {
	return each(ctx, l, "clusterrolebindings."+rbacv1.GroupName, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.Typed.RbacV1().ClusterRoleBindings().List(ctx, o)
	}, func(r *rbacv1.ClusterRoleBinding) {
		l.f.Book.ClusterRoleBindings = append(l.f.Book.ClusterRoleBindings, r)
	})
}

func (l *looker) roles(ctx context.Context) error {
	return each(ctx, l, "roles."+rbacv1.GroupName, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.Typed.RbacV1().Roles("").List(ctx, o)
	}, func(r *rbacv1.Role) { l.f.Book.Roles = append(l.f.Book.Roles, r) })
}

func (l *looker) roleBindings(ctx context.Context) error {
	return each(ctx, l, "rolebindings."+rbacv1.GroupName, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.Typed.RbacV1().RoleBindings("").List(ctx, o)
	}, func(r *rbacv1.RoleBinding) { l.f.Book.RoleBindings = append(l.f.Book.RoleBindings, r) })
}

// listNodes keeps of each node what checks read.
func (l *looker) listNodes(ctx context.Context) error {
	return each(ctx, l, "nodes", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.Typed.CoreV1().Nodes().List(ctx, o)
	}, func(n *corev1.Node) {
		n.ManagedFields, n.Annotations, n.Status.Images = nil, nil, nil
		l.nodes = append(l.nodes, n)
	})
}

// listLeases parts the leases of kubelets from those of components.
func (l *looker) listLeases(ctx context.Context) error {
	return each(ctx, l, "leases.coordination.k8s.io", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return l.client.Typed.CoordinationV1().Leases("").List(ctx, o)
	}, func(lease *coordinationv1.Lease) {
		lease.ManagedFields = nil
		if lease.Namespace == corev1.NamespaceNodeLease {
			l.f.NodeLeases = append(l.f.NodeLeases, lease)
			return
		}
		l.leases = append(l.leases, lease)
	})
}

// definitionsPath is where CustomResourceDefinitions are listed, and metadataOnly asks for them without their schemas, which are
// nearly all of them.
const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	metadataOnly    = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

func (l *looker) definitions(ctx context.Context) error {
	data, err := l.client.Typed.CoreV1().RESTClient().Get().AbsPath(definitionsPath).Param("resourceVersion", "0").SetHeader("Accept", metadataOnly).Do(ctx).Raw()
	if err != nil {
		return l.note("customresourcedefinitions.apiextensions.k8s.io", err)
	}
	var list metav1.PartialObjectMetadataList
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for i := range list.Items {
		l.f.Definitions = append(l.f.Definitions, &list.Items[i])
	}
	return nil
}
