package check

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/install"
	manifests "github.com/gangctl/gangctl/install/operator"
	"github.com/gangctl/gangctl/pkg/setup/operator"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// need is a set of rules of one account.
type need struct {
	// purpose is what the rules are for.
	purpose string
	// namespace is empty for rules that are needed everywhere.
	namespace string
	rules     []rbacv1.PolicyRule
	// optional rights make the component do more; without them it still works.
	optional bool
}

// judge compares what an account holds with what it needs.
func judge(f *Facts, who string, account rbac.Account, needs []need) []Finding {
	var findings []Finding
	count := 0
	for _, n := range needs {
		count += len(rbac.Atoms(n.rules))
		missing := rbac.Missing(f.Policy.Rules(account, n.namespace), n.rules)
		if len(missing) == 0 {
			continue
		}
		var rules []string
		for _, r := range missing {
			rules = append(rules, rbac.String(r))
		}
		status := Fail
		if n.optional {
			status = Warn
		}
		where := ""
		if n.namespace != "" {
			where = " in namespace " + n.namespace
		}
		finding := findf(status, "%s (account %s/%s) may not %s%s: %s", who, account.Namespace, account.Name, strings.Join(rules, "; "), where, n.purpose)
		finding.Fix = rbac.YAML(rbac.Grant("gangctl-repair-"+account.Name, account.String(), map[string][]rbacv1.PolicyRule{n.namespace: missing})...)
		findings = append(findings, finding)
	}
	if len(findings) == 0 {
		findings = append(findings, okf("%s (account %s/%s): %d rights, none missing", who, account.Namespace, account.Name, count))
	}
	return findings
}

// schedulerRules: what the manifests grant is what the scheduler uses.
func schedulerRules(f *Facts) []Finding {
	var findings []Finding
	accounts := schedulerAccounts(f)
	for _, account := range accounts {
		findings = append(findings, judge(f, install.SchedulerInstance, account, schedulerNeeds(f, account.Namespace))...)
	}
	return findings
}

// trusted reports whether a namespace is where our ClusterRoleBinding has the scheduler; without one, where it is by default. In other
// namespaces any user may have made what looks like the scheduler, and would be proposed for its rights.
func trusted(f *Facts, namespace string) bool {
	for _, b := range f.Policy.ClusterRoleBindings {
		if b.Name == install.SchedulerBinding {
			return slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Namespace == namespace })
		}
	}
	return namespace == install.DefaultNamespace
}

// schedulerAccounts are those that the scheduler runs as; where it has no Deployment, the one that was made for it.
func schedulerAccounts(f *Facts) []rbac.Account {
	var all []rbac.Account
	for _, d := range ours(f) {
		if !trusted(f, d.Namespace) {
			continue
		}
		all = append(all, rbac.AccountOf(d.Namespace, &d.Spec.Template.Spec))
	}
	if len(all) > 0 {
		return all
	}
	for _, a := range f.View.Snap.ServiceAccounts {
		if a.Name == install.SchedulerInstance && a.Labels[install.LabelPartOf] == install.PartOf && trusted(f, a.Namespace) {
			all = append(all, rbac.Account{Namespace: a.Namespace, Name: a.Name})
		}
	}
	return all
}

// schedulerNeeds are the rules that the shipped bindings grant, verbatim.
func schedulerNeeds(f *Facts, namespace string) []need {
	shipped := rbac.Policy{}
	var bindings []*unstructured.Unstructured
	for _, o := range f.Shipped {
		switch o.GetKind() {
		case "ClusterRole":
			shipped.ClusterRoles = append(shipped.ClusterRoles, typed[rbacv1.ClusterRole](o))
		case "Role":
			shipped.Roles = append(shipped.Roles, typed[rbacv1.Role](o))
		case "ClusterRoleBinding", "RoleBinding":
			bindings = append(bindings, o)
		}
	}
	var needs []need
	for _, o := range bindings {
		b := typed[rbacv1.RoleBinding](o) // of the fields that are read, both kinds have the same
		if !slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Name == install.SchedulerInstance
		}) {
			continue // a role for users
		}
		if b.RoleRef.Name == policyRole && f.Policy.ClusterRole(policyRole) == nil {
			continue // optional: it is installed on request
		}
		n := need{purpose: purposes[b.RoleRef.Name], namespace: b.Namespace, optional: slices.Contains([]string{explainRole, answersRole, policyRole}, b.RoleRef.Name)}
		if n.namespace != "" && n.namespace != "kube-system" {
			n.namespace = namespace
		}
		if n.purpose == "" {
			n.purpose = "it needs them to schedule"
		}
		if b.RoleRef.Kind == "ClusterRole" {
			role := shipped.ClusterRole(b.RoleRef.Name)
			if role == nil {
				role = f.Policy.ClusterRole(b.RoleRef.Name) // one of Kubernetes' own
			}
			if role != nil {
				n.rules = role.Rules
			}
		}
		for _, role := range slices.Concat(shipped.Roles, f.Policy.Roles) {
			if b.RoleRef.Kind == "Role" && role.Name == b.RoleRef.Name && role.Namespace == b.Namespace && n.rules == nil {
				n.rules = role.Rules
			}
		}
		needs = append(needs, n)
	}
	return needs
}

const (
	explainRole = "gangctl:gang-scheduler:explain"
	answersRole = "gangctl:gang-scheduler:answers"
	policyRole  = "gangctl:gang-scheduler:policy"
)

// purposes are the consequences for the scheduler of a role that is missing.
var purposes = map[string]string{
	"system:kube-scheduler":                     "it cannot place pods",
	"system:volume-scheduler":                   "it cannot place pods with volumes",
	"gangctl:gang-scheduler":                    "it does not see gangs, or cannot report their status",
	"gangctl:gang-scheduler:lease":              "it cannot elect a leader",
	"extension-apiserver-authentication-reader": "it cannot check who requests its metrics",
	explainRole: "what it publishes of waiting gangs has less detail",
	answersRole: "it cannot sign the answers that it publishes",
	policyRole:  "it cannot take back the places of gangs that are not whole",
}

func operatorRules(f *Facts) []Finding {
	var findings []Finding
	all := f.operators()
	for _, o := range all {
		for _, finding := range judge(f, "training operator "+o.Release.String(), o.Account(), operatorNeeds(o.Needs(), o.Account().Namespace, false)) {
			if finding.Fix != "" { // it does not try again by itself what it was refused
				finding = finding.hint("grant it, and let the operator look at the jobs again: kubectl -n %s rollout restart deployment/%s", o.Deployment.Namespace, o.Deployment.Name)
			}
			findings = append(findings, finding)
		}
	}
	if len(all) > 0 {
		return findings
	}
	// Without a Deployment it is not known whether it makes gangs: it may need the rights for that.
	for _, a := range f.View.Snap.ServiceAccounts {
		account := rbac.Account{Namespace: a.Namespace, Name: a.Name}
		if (a.Name == "training-operator" || a.Name == "tf-job-operator") && operator.TrustedAccount(account, &f.Policy, manifests.DefaultNamespace) {
			needs := append(operatorNeeds(operator.JobNeeds(), a.Namespace, false),
				operatorNeeds([]operator.Need{operator.GangNeed("scheduling.x-k8s.io")}, a.Namespace, true)...)
			findings = append(findings, judge(f, "training operator", account, needs)...)
		}
	}
	return findings
}

func operatorNeeds(needs []operator.Need, namespace string, optional bool) []need {
	var all []need
	for _, n := range needs {
		one := need{purpose: "it cannot " + n.Purpose, rules: n.Rules, optional: optional}
		if n.Namespaced {
			one.namespace = namespace
		}
		all = append(all, one)
	}
	return all
}

// typed is a shipped object as its type; the manifests are held to their types by tests.
func typed[T any](o *unstructured.Unstructured) *T {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		panic(fmt.Sprintf("manifest of %s %s: %v", o.GetKind(), o.GetName(), err))
	}
	return into
}
