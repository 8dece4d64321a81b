package check

import (
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	manifests "github.com/gangctl/gangctl/install/operator"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/version"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/setup/operator"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// Facts are the inputs of the checks: a cluster at one moment, and the caller.
type Facts struct {
	// View is the cluster's state. Its snapshot holds nodes with their nodeInfo.
	View *view.View
	// Version is that of this gangctl.
	Version version.Info
	// Namespace is where the caller wants to run jobs.
	Namespace string
	// User is the caller, as the API server calls them; empty if it does not report one.
	User string
	// Unready are the checks of the API server that fail; empty if it is ready, or does not report.
	Unready string
	// ServerTime is the API server's clock, in whole seconds; zero if it does not report it. QueriedAt and AnsweredAt are the caller's
	// clock before and after.
	ServerTime            time.Time
	QueriedAt, AnsweredAt time.Time
	// NodeLeases are the heartbeats of kubelets.
	NodeLeases []*coordinationv1.Lease
	// Definitions are the CustomResourceDefinitions, without their schemas.
	Definitions []*metav1.PartialObjectMetadata
	// Policy is who may do what.
	Policy rbac.Policy
	// AdmissionPolicies and AdmissionBindings are what limits requests that are allowed; none where they are not served.
	AdmissionPolicies []*admissionv1.ValidatingAdmissionPolicy
	AdmissionBindings []*admissionv1.ValidatingAdmissionPolicyBinding
	// Reviews are the API server's answers to whether the caller may do something.
	Reviews []Review
	// Shipped are the objects that install would write; those of the scheduler's rights are what it needs.
	Shipped []*unstructured.Unstructured
	// Tried reports whether the API server has tried them, and Obstacles are why some cannot be written: something of another user is in their place,
	// or what is there cannot be changed.
	Tried     bool
	Obstacles []*failure.Error
	// Unlisted are the resources that could not be listed, with the reason.
	Unlisted map[string]string
	// Denied are those of them for which a right is missing.
	Denied map[string]bool
}

// Review is the answer to whether the caller may do something.
type Review struct {
	Access
	Allowed bool
	// Reason is how the API server put it; Failed that the review itself failed.
	Reason string
	Failed string
}

// Access is a right that the caller needs.
type Access struct {
	Verb, Group, Resource, Subresource string
	// Namespace is empty for the cluster; Name for all objects.
	Namespace, Name string
	// For completes "you may not …, so …".
	For string
}

// Rule is the right as an RBAC rule.
func (a Access) Rule() rbacv1.PolicyRule {
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

// operators are those that run as Deployments, without those that anybody may have made.
func (f *Facts) operators() []operator.Operator {
	trusted, _ := f.foundOperators()
	return trusted
}

// foundOperators parts those that run as Deployments by whom one may take them for operators. Who may not read the bindings may change
// nothing for them either, and sees all as operators. One that is stopped does not count where another runs.
func (f *Facts) foundOperators() (trusted, others []operator.Operator) {
	all := operator.Find(f.View.Snap.Deployments)
	if f.policyUnknown() {
		return operator.Acting(all), nil
	}
	trusted, others = operator.Trusted(all, &f.Policy, manifests.DefaultNamespace)
	return operator.Acting(trusted), others
}

// policyUnknown reports whether what accounts may do in the whole cluster could not be read.
func (f *Facts) policyUnknown() bool {
	_, roles := f.Unlisted[clusterRoles]
	_, bindings := f.Unlisted[clusterBinding]
	return roles || bindings
}

func findf(s Status, format string, args ...any) Finding {
	return Finding{Status: s, Message: fmt.Sprintf(format, args...)}
}

// hint returns the finding with what to do next.
func (f Finding) hint(format string, args ...any) Finding {
	f.Hint = fmt.Sprintf(format, args...)
	return f
}
