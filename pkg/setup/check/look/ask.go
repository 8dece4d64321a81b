package look

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/setup/check"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// atOnce is how many questions are asked at the same time.
const atOnce = 8

// clock asks who the caller is. The answer also carries the API server's time. A server that does not tell leaves both empty.
func (l *looker) clock(ctx context.Context) {
	l.f.AskedAt = l.o.Now()
	review, err := l.client.Typed.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	l.f.AnsweredAt = l.o.Now()
	if err == nil {
		l.f.User, l.f.ServerTime = review.Status.UserInfo.Username, review.CreationTimestamp.Time
	}
}

// ready asks the API server whether it is ready; what it says of itself if not.
func (l *looker) ready(ctx context.Context) error {
	data, err := l.client.Typed.CoreV1().RESTClient().Get().AbsPath("/readyz").Param("verbose", "true").DoRaw(ctx)
	var status apierrors.APIStatus
	if err == nil || !errors.As(err, &status) || status.Status().Code < 500 {
		return nil // others tell whether it can be reached
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

// reviews asks for the rights that matter.
func (l *looker) reviews(ctx context.Context) error {
	asks := append(check.SubmitAsks(l.o.Namespace), check.KindAsks(l.o.Namespace, l.f.World.Snap)...)
	if l.o.Before {
		asks = installAsks(l.o.Shipped)
	}
	answers := make([]check.Review, len(asks))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, ask := range asks {
		group.Go(func() error {
			answers[i] = l.ask(groupCtx, ask)
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

// installAsks are the rights to write the objects, to find what an earlier version has left, and to see that what is there gets
// ready.
func installAsks(objects []*unstructured.Unstructured) []check.Ask {
	asks := check.InstallAsks(objects, resourceOf)
	for _, k := range apply.ShippedKinds() {
		asks = append(asks, check.Ask{Verb: "list", Group: k.Resource.Group, Resource: k.Resource.Resource, For: "what an earlier version has left is not found"})
	}
	return append(asks, check.Ask{Verb: "watch", Group: "apps", Resource: "deployments", For: "nobody waits until the scheduler is ready"})
}

func resourceOf(gvk schema.GroupVersionKind) string {
	gvr, _ := meta.UnsafeGuessKindToResource(gvk) // what is shipped has regular plurals
	return gvr.Resource
}

func (l *looker) ask(ctx context.Context, a check.Ask) check.Review {
	review, err := l.client.Typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: a.Namespace, Verb: a.Verb, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource, Name: a.Name}}}, metav1.CreateOptions{})
	if err != nil {
		return check.Review{Ask: a, Failed: err.Error()}
	}
	return check.Review{Ask: a, Allowed: review.Status.Allowed, Reason: review.Status.Reason}
}

// holds allows what the API server allows, too: to grant rights, it is enough to hold all of them.
func (l *looker) holds(ctx context.Context, r *check.Review) {
	if r.Allowed || r.Failed != "" || r.Verb != "bind" && r.Verb != "escalate" {
		return
	}
	rules, known := l.rulesOf(r.Ask)
	if !known {
		return
	}
	for _, atom := range rbac.Atoms(rules) {
		if len(atom.NonResourceURLs) > 0 {
			return
		}
		resource, sub, _ := strings.Cut(atom.Resources[0], "/")
		a := check.Ask{Verb: atom.Verbs[0], Group: atom.APIGroups[0], Resource: resource, Subresource: sub, Namespace: r.Namespace}
		if len(atom.ResourceNames) > 0 {
			a.Name = atom.ResourceNames[0]
		}
		if !l.ask(ctx, a).Allowed {
			return
		}
	}
	r.Allowed = true
}

// rulesOf are the rules of the role that somebody wants to write or to bind: what is shipped, else what the cluster has.
func (l *looker) rulesOf(a check.Ask) ([]rbacv1.PolicyRule, bool) {
	for _, o := range l.o.Shipped {
		if o.GetName() == a.Name && resourceOf(o.GroupVersionKind()) == a.Resource && o.GetNamespace() == a.Namespace {
			rules, err := rbac.RulesOf(o)
			return rules, err == nil
		}
	}
	if role := l.f.Book.ClusterRole(a.Name); role != nil && a.Resource == "clusterroles" {
		return role.Rules, true
	}
	i := slices.IndexFunc(l.f.Book.Roles, func(r *rbacv1.Role) bool { return r.Name == a.Name && r.Namespace == a.Namespace })
	if i < 0 || a.Resource != "roles" {
		return nil, false
	}
	return l.f.Book.Roles[i].Rules, true
}
