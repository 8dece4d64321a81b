// Package facts collects the facts that checks judge: one LIST a kind, from the API server's cache, and what only the API server
// knows. Nothing is changed. A list that is refused is recorded, not fatal.
package facts

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot/collect"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/setup/check"
)

// Options select what is collected.
type Options struct {
	// Namespace is where the caller wants to run jobs.
	Namespace string
	// Version is that of this gangctl.
	Version version.Info
	// Shipped are the objects of the gang scheduler's installation.
	Shipped []*unstructured.Unstructured
	// Before limits the facts to those that matter before an installation.
	Before bool
	// Try has the API server try what is shipped where something of the name is there.
	Try bool
	// Now is the clock.
	Now func() time.Time
}

// never are kinds that no check needs; idle are those that matter only once gangs run.
var (
	never = []string{"jobs", "replicasets", "statefulsets", "resourcequotas", "limitranges", "persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes", "csidrivers",
		"volumeattachments", "priorityclasses", "poddisruptionbudgets", "runtimeclasses", "resourceclaims", "resourceclaimtemplates", "deviceclasses"}
	// own are read here: checks need other fields of them than other answers, or get along without the list.
	own  = []string{"nodes", "leases", "clusterroles", "clusterrolebindings", "resourceslices"}
	idle = []string{"pods", "events", "daemonsets", "serviceaccounts"}
)

// Collect collects the facts. An unreachable server, or one that does not accept the caller, is an error.
func Collect(ctx context.Context, client *kube.Client, o Options) (*check.Facts, error) {
	f := &check.Facts{Version: o.Version, Namespace: o.Namespace, Shipped: o.Shipped, Unlisted: map[string]string{}, Denied: map[string]bool{}}
	l := &collector{client: client, o: o, f: f}
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
		f.Unlisted[d.Resource], f.Denied[d.Resource] = d.Message, true
	}
	s.Nodes, s.Leases, s.ResourceSlices = l.nodes, l.leases, l.slices
	s.ClusterRoles, s.ClusterRoleBindings = l.f.Policy.ClusterRoles, l.f.Policy.ClusterRoleBindings
	s.Finish()
	f.View = view.New(s)
	return f, l.reviews(ctx)
}

// reads are the requests besides those of the snapshot.
func (l *collector) reads() []func(context.Context) error {
	reads := []func(context.Context) error{l.definitions, l.clusterRoles, l.clusterRoleBindings, l.roles, l.ready}
	if l.o.Try {
		reads = append(reads, l.obstacles)
	}
	if !l.o.Before {
		reads = append(reads, l.roleBindings, l.admissionPolicies, l.admissionBindings, l.listNodes, l.listLeases, l.listSlices)
	}
	return reads
}

// collector reads the facts of one run.
type collector struct {
	client *kube.Client
	o      Options
	// mu guards f while lists are read.
	mu     sync.Mutex
	f      *check.Facts
	nodes  []*corev1.Node
	leases []*coordinationv1.Lease
	slices []*resourcev1.ResourceSlice
}

// each lists a kind from the API server's cache. A refusal, or a failure of the server, is recorded under the kind's
// name; only what concerns all requests is an error.
func each[L metav1.ListInterface](ctx context.Context, l *collector, resource string, list paging.Request[L], keep func(L)) error {
	pages, err := paging.All(ctx, metav1.ListOptions{ResourceVersion: "0"}, list)
	for _, page := range pages {
		keep(page)
	}
	return l.note(resource, err)
}

// note records that a kind could not be listed.
func (l *collector) note(resource string, err error) error {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err), !errors.As(err, &status):
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.f.Unlisted[resource], l.f.Denied[resource] = status.Status().Message, apierrors.IsForbidden(err)
	return nil
}

func (l *collector) clusterRoles(ctx context.Context) error {
	return each(ctx, l, "clusterroles."+rbacv1.GroupName, l.client.Typed.RbacV1().ClusterRoles().List, func(page *rbacv1.ClusterRoleList) {
		l.f.Policy.ClusterRoles = append(l.f.Policy.ClusterRoles, paging.Pointers(page.Items)...)
	})
}

func (l *collector) clusterRoleBindings(ctx context.Context) error {
	return each(ctx, l, "clusterrolebindings."+rbacv1.GroupName, l.client.Typed.RbacV1().ClusterRoleBindings().List, func(page *rbacv1.ClusterRoleBindingList) {
		l.f.Policy.ClusterRoleBindings = append(l.f.Policy.ClusterRoleBindings, paging.Pointers(page.Items)...)
	})
}

func (l *collector) roles(ctx context.Context) error {
	return each(ctx, l, "roles."+rbacv1.GroupName, l.client.Typed.RbacV1().Roles("").List, func(page *rbacv1.RoleList) {
		l.f.Policy.Roles = append(l.f.Policy.Roles, paging.Pointers(page.Items)...)
	})
}

func (l *collector) roleBindings(ctx context.Context) error {
	return each(ctx, l, "rolebindings."+rbacv1.GroupName, l.client.Typed.RbacV1().RoleBindings("").List, func(page *rbacv1.RoleBindingList) {
		l.f.Policy.RoleBindings = append(l.f.Policy.RoleBindings, paging.Pointers(page.Items)...)
	})
}

// admissionPolicies lists what servers since Kubernetes 1.30 serve; others have none.
func (l *collector) admissionPolicies(ctx context.Context) error {
	return each(ctx, l, "validatingadmissionpolicies."+admissionv1.GroupName, func(ctx context.Context, o metav1.ListOptions) (*admissionv1.ValidatingAdmissionPolicyList, error) {
		list, err := l.client.Typed.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, o)
		return list, ifServed(err)
	}, func(page *admissionv1.ValidatingAdmissionPolicyList) {
		l.f.AdmissionPolicies = append(l.f.AdmissionPolicies, paging.Pointers(page.Items)...)
	})
}

func (l *collector) admissionBindings(ctx context.Context) error {
	return each(ctx, l, "validatingadmissionpolicybindings."+admissionv1.GroupName, func(ctx context.Context, o metav1.ListOptions) (*admissionv1.ValidatingAdmissionPolicyBindingList, error) {
		list, err := l.client.Typed.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(ctx, o)
		return list, ifServed(err)
	}, func(page *admissionv1.ValidatingAdmissionPolicyBindingList) {
		l.f.AdmissionBindings = append(l.f.AdmissionBindings, paging.Pointers(page.Items)...)
	})
}

// ifServed is the error of a list, unless that is that the kind is not served: then there are none.
func ifServed(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// listNodes keeps of each node what checks read.
func (l *collector) listNodes(ctx context.Context) error {
	return each(ctx, l, "nodes", l.client.Typed.CoreV1().Nodes().List, func(page *corev1.NodeList) {
		for _, n := range paging.Pointers(page.Items) {
			n.ManagedFields, n.Annotations, n.Status.Images = nil, nil, nil
			l.nodes = append(l.nodes, n)
		}
	})
}

// listSlices keeps of what DRA drivers offer which driver does on which nodes: the devices are most of it.
func (l *collector) listSlices(ctx context.Context) error {
	return each(ctx, l, check.ResourceSlices, func(ctx context.Context, o metav1.ListOptions) (*resourcev1.ResourceSliceList, error) {
		list, err := l.client.Typed.ResourceV1().ResourceSlices().List(ctx, o)
		return list, ifServed(err)
	}, func(page *resourcev1.ResourceSliceList) {
		for _, s := range paging.Pointers(page.Items) {
			if len(s.Spec.Devices) == 0 {
				continue // a driver that has found none
			}
			s.ManagedFields, s.Spec.Devices, s.Spec.SharedCounters = nil, nil, nil
			l.slices = append(l.slices, s)
		}
	})
}

// listLeases parts the leases of kubelets from those of components.
func (l *collector) listLeases(ctx context.Context) error {
	return each(ctx, l, "leases.coordination.k8s.io", l.client.Typed.CoordinationV1().Leases("").List, func(page *coordinationv1.LeaseList) {
		for _, lease := range paging.Pointers(page.Items) {
			lease.ManagedFields = nil
			if lease.Namespace == corev1.NamespaceNodeLease {
				l.f.NodeLeases = append(l.f.NodeLeases, lease)
				continue
			}
			l.leases = append(l.leases, lease)
		}
	})
}

// definitionsPath is where CustomResourceDefinitions are listed, and metadataOnly requests them without their schemas, which are
// nearly all of them.
const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	metadataOnly    = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

func (l *collector) definitions(ctx context.Context) error {
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

// Ours reports whether an object is of the scheduler's installation.
func Ours(there *unstructured.Unstructured) bool { return install.Of(there, install.SchedulerInstance) }

// obstacles has the API server try what is shipped, where something of the name is there.
func (l *collector) obstacles(ctx context.Context) error {
	a := apply.Applier{Client: l.client.Dynamic, Ours: Ours}
	l.f.Tried = true
	for _, err := range a.Obstacles(ctx, l.o.Shipped) {
		l.f.Obstacles = append(l.f.Obstacles, failure.From(err))
	}
	return nil
}

// clock queries the caller's identity. The answer also carries the API server's time. A server that refuses leaves both empty.
func (l *collector) clock(ctx context.Context) {
	l.f.QueriedAt = l.o.Now()
	review, err := l.client.Typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	l.f.AnsweredAt = l.o.Now()
	if err == nil {
		l.f.User, l.f.ServerTime = review.Status.UserInfo.Username, review.CreationTimestamp.Time
	}
}

// ready queries the readiness of the API server, and keeps the checks of its own that fail.
func (l *collector) ready(ctx context.Context) error {
	data, err := l.client.Typed.CoreV1().RESTClient().Get().AbsPath("/readyz").Param("verbose", "true").DoRaw(ctx)
	var status apierrors.APIStatus
	if err == nil || !errors.As(err, &status) || status.Status().Code < 500 {
		return nil // other requests find out whether it can be reached
	}
	var bad []string
	for line := range strings.Lines(string(data)) {
		if failed, ok := strings.CutPrefix(strings.TrimSpace(line), "[-]"); ok {
			bad = append(bad, failed)
		}
	}
	if l.f.Unready = strings.Join(bad, ", "); l.f.Unready == "" {
		l.f.Unready = status.Status().Message
	}
	return nil
}
