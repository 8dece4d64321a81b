package facts

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/setup/check"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// atOnce is how many reviews are under way at a time.
const atOnce = 8

// reviews queries the rights that matter.
func (l *collector) reviews(ctx context.Context) error {
	accesses := append(check.SubmitAccess(l.o.Namespace), check.KindAccess(l.o.Namespace, l.f.View.Snap)...)
	if l.o.Before {
		accesses = installAccess(l.o.Shipped)
	}
	answers := make([]check.Review, len(accesses))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, access := range accesses {
		group.Go(func() error {
			answers[i] = l.access(groupCtx, access)
			return groupCtx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i := range answers {
		l.holds(ctx, &answers[i])
	}
	l.f.Reviews = answers
	return nil
}

// installAccess are the rights to write the objects, to find what an earlier version has left, and to see that what is there gets
// ready.
func installAccess(objects []*unstructured.Unstructured) []check.Access {
	accesses := check.InstallAccess(objects, resourceOf)
	for _, k := range apply.ShippedKinds() {
		accesses = append(accesses, check.Access{Verb: "list", Group: k.Resource.Group, Resource: k.Resource.Resource, For: "what an earlier version has left is not found"})
	}
	return append(accesses, check.Access{Verb: "watch", Group: "apps", Resource: "deployments", For: "install cannot wait until the scheduler is ready"})
}

func resourceOf(gvk schema.GroupVersionKind) string {
	gvr, _ := meta.UnsafeGuessKindToResource(gvk) // what is shipped has regular plurals
	return gvr.Resource
}

func (l *collector) access(ctx context.Context, a check.Access) check.Review {
	review, err := l.client.Typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: a.Namespace, Verb: a.Verb, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource, Name: a.Name}}}, metav1.CreateOptions{})
	if err != nil {
		return check.Review{Access: a, Failed: err.Error()}
	}
	return check.Review{Access: a, Allowed: review.Status.Allowed, Reason: review.Status.Reason}
}

// holds allows what the API server allows, too: to grant rights, it is enough to hold all of them.
func (l *collector) holds(ctx context.Context, r *check.Review) {
	if r.Allowed || r.Failed != "" || r.Verb != "bind" && r.Verb != "escalate" {
		return
	}
	rules, known := l.rulesOf(r.Access)
	if !known {
		return
	}
	for _, atom := range rbac.Atoms(rules) {
		if len(atom.NonResourceURLs) > 0 {
			return
		}
		resource, sub, _ := strings.Cut(atom.Resources[0], "/")
		a := check.Access{Verb: atom.Verbs[0], Group: atom.APIGroups[0], Resource: resource, Subresource: sub, Namespace: r.Namespace}
		if len(atom.ResourceNames) > 0 {
			a.Name = atom.ResourceNames[0]
		}
		if !l.access(ctx, a).Allowed {
			return
		}
	}
	r.Allowed = true
}

// rulesOf are the rules of the role that the access review is to write or to bind: the shipped ones, else those in the cluster.
func (l *collector) rulesOf(a check.Access) ([]rbacv1.PolicyRule, bool) {
	for _, o := range l.o.Shipped {
		if o.GetName() == a.Name && resourceOf(o.GroupVersionKind()) == a.Resource && o.GetNamespace() == a.Namespace {
			rules, err := rbac.RulesOf(o)
			return rules, err == nil
		}
	}
	if role := l.f.Policy.ClusterRole(a.Name); role != nil && a.Resource == "clusterroles" {
		return role.Rules, true
	}
	i := slices.IndexFunc(l.f.Policy.Roles, func(r *rbacv1.Role) bool { return r.Name == a.Name && r.Namespace == a.Namespace })
	if i < 0 || a.Resource != "roles" {
		return nil, false
	}
	return l.f.Policy.Roles[i].Rules, true
}
