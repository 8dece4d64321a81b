package check

import (
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/setup/operator"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// Facts are what the checks judge: a cluster at one moment, and who looked.
type Facts struct {
	// World is the cluster's state. Its snapshot holds nodes with their nodeInfo.
	World *view.View
	// Version is the gangctl that looks.
	Version version.Info
	// Namespace is where the caller wants to run jobs.
	Namespace string
	// User is the caller, as the API server calls them; empty if it does not tell.
	User string
	// Unready is what the API server says of itself where it is not ready; empty if it is, or does not tell.
	Unready string
	// ServerTime is the API server's clock, in whole seconds; zero if it does not tell. AskedAt and AnsweredAt are the caller's
	// clock before and after.
	ServerTime          time.Time
	AskedAt, AnsweredAt time.Time
	// NodeLeases are those by which kubelets say that they live.
	NodeLeases []*coordinationv1.Lease
	// Definitions are the CustomResourceDefinitions, without their schemas.
	Definitions []*metav1.PartialObjectMetadata
	// Book holds who may do what.
	Book rbac.Book
	// Reviews are the API server's answers to whether the caller may do something.
	Reviews []Review
	// Shipped are the objects that install would write; those of the scheduler's rights are what it needs.
	Shipped []*unstructured.Unstructured
	// Unseen are the resources that could not be listed, with the reason.
	Unseen map[string]string
	// Denied are those of them for which a right is missing.
	Denied map[string]bool
}

// Review is the answer to whether the caller may do something.
type Review struct {
	Ask
	Allowed bool
	// Reason is how the API server put it; Failed that it could not be asked.
	Reason string
	Failed string
}

// Ask is a right that the caller is asked for.
type Ask struct {
	Verb, Group, Resource, Subresource string
	// Namespace is empty for the cluster; Name for all objects.
	Namespace, Name string
	// For completes "you may not …, so …".
	For string
}

// Rule is the right as an RBAC rule.
func (a Ask) Rule() rbacv1.PolicyRule {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	r := rbacv1.PolicyRule{Verbs: []string{a.Verb}, APIGroups: []string{a.Group}, Resources: []string{resource}}
	if a.Name != "" && a.Verb != "create" { // a rule for create cannot be limited to names
		r.ResourceNames = []string{a.Name}
	}
	return r
}

// operators are those that run as Deployments.
func (f *Facts) operators() []operator.Operator { return operator.Find(f.World.Snap.Deployments) }

func findf(s Status, format string, args ...any) Finding {
	return Finding{Status: s, Message: fmt.Sprintf(format, args...)}
}

// hint returns the finding with what to do next.
func (f Finding) hint(format string, args ...any) Finding {
	f.Hint = fmt.Sprintf(format, args...)
	return f
}
