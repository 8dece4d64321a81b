package check

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/setup/argv"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// namesTaken: a name that another scheduler answers to would have two.
func namesTaken(f *Facts) []Finding {
	var findings []Finding
	desired := shippedNames(f)
	for _, name := range desired {
		for _, d := range served(f, name) {
			switch {
			case slices.Contains(ours(f), d):
			case !maySchedule(f, d):
				findings = append(findings, warnf("Deployment %s/%s answers to schedulerName %s, and its account does not see the pods of all namespaces: it is not taken for a scheduler", d.Namespace, d.Name, name))
			default:
				findings = append(findings, failf("Deployment %s/%s answers to schedulerName %s: two would bind the same pods", d.Namespace, d.Name, name).
					hint("stop it first: kubectl -n %s scale deployment/%s --replicas=0", d.Namespace, d.Name))
			}
		}
	}
	for _, d := range ours(f) {
		switch {
		case !elsewhere(f, d):
		case !trusted(f, d.Namespace):
			findings = append(findings, warnf("Deployment %s/%s looks like the gang scheduler, and ClusterRoleBinding %s does not name its namespace", d.Namespace, d.Name, install.SchedulerBinding))
		default:
			findings = append(findings, failf("the gang scheduler runs in namespace %s already", d.Namespace).hint("gangctl upgrade, or gangctl uninstall first"))
		}
	}
	if len(findings) == 0 {
		findings = append(findings, okf("no scheduler answers to %s", joined(desired)))
	}
	return findings
}

// maySchedule reports whether a Deployment may be a scheduler: one in kube-system, or whose account sees the pods of all namespaces, as that
// of every scheduler does, also of those that leave the binding to another program. Another user may have made another one, and blocks no other
// from installing ours. Where the bindings could not be read, any may be.
func maySchedule(f *Facts, d *appsv1.Deployment) bool {
	see := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"watch"}}}
	return d.Namespace == metav1.NamespaceSystem || f.policyUnknown() ||
		len(rbac.Missing(f.Policy.Rules(rbac.AccountOf(d.Namespace, &d.Spec.Template.Spec), ""), see)) == 0
}

// shippedNames are the schedulerNames that the installation would answer to.
func shippedNames(f *Facts) []string {
	all := []string{install.SchedulerInstance}
	for _, o := range f.Shipped {
		if o.GetKind() != "Deployment" {
			continue
		}
		for _, c := range typed[appsv1.Deployment](o).Spec.Template.Spec.Containers {
			all = append(all, argv.List(c, "serve")...)
		}
	}
	return all
}

// target is the namespace of the installation.
func target(f *Facts) string {
	for _, o := range f.Shipped {
		if o.GetKind() == "Deployment" {
			return o.GetNamespace()
		}
	}
	return install.DefaultNamespace
}

func elsewhere(f *Facts, d *appsv1.Deployment) bool { return d.Namespace != target(f) }

func targetNamespace(f *Facts) []Finding {
	name := target(f)
	for _, ns := range f.View.Snap.Namespaces {
		if ns.Name != name {
			continue
		}
		if ns.DeletionTimestamp != nil {
			return []Finding{failf("namespace %s is being deleted", name).hint("wait until it is gone: kubectl wait --for=delete namespace/%s", name)}
		}
		if level := ns.Labels["pod-security.kubernetes.io/enforce"]; level != "" {
			return []Finding{okf("namespace %s exists, its pod security level is %s; the scheduler's pods comply with restricted", name, level)}
		}
		return []Finding{okf("namespace %s exists", name)}
	}
	return []Finding{okf("namespace %s is made, with pod security level restricted", name)}
}
