package check

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// namesTaken: a name that another scheduler answers to would have two.
func namesTaken(f *Facts) []Finding {
	var findings []Finding
	desired := shippedNames(f)
	for _, name := range desired {
		trusted := served(f, name)
		for _, d := range running(component.Serving(f.View, name)) {
			switch {
			case lookalike(d):
			case slices.Contains(trusted, d):
				findings = append(findings, failf("Deployment %s/%s answers to schedulerName %s: two would bind the same pods", d.Namespace, d.Name, name).
					hint("stop it first: kubectl -n %s scale deployment/%s --replicas=0", d.Namespace, d.Name))
			default:
				findings = append(findings, warnf("Deployment %s/%s answers to schedulerName %s, and no account of its namespace may bind the pods of all others: it is not taken for a scheduler", d.Namespace, d.Name, name))
			}
		}
	}
	for _, d := range f.View.Snap.Deployments {
		switch {
		case !lookalike(d) || !elsewhere(f, d):
		case !trusted(f, d.Namespace):
			findings = append(findings, warnf("Deployment %s/%s looks like the gang scheduler, and ClusterRoleBinding %s does not name its namespace", d.Namespace, d.Name, install.SchedulerBinding))
		default:
			findings = append(findings, failf("the gang scheduler runs in namespace %s already", d.Namespace).hint("gangctl upgrade, or gangctl uninstall first"))
		}
	}
	if len(findings) == 0 {
		findings = append(findings, okf("no scheduler answers to %s", strings.Join(desired, ", ")))
	}
	return findings
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

// placesTaken: an object of another user is not taken over, as an uninstall would delete it.
func placesTaken(f *Facts) []Finding {
	if !f.Tried {
		return nil
	}
	var findings []Finding
	for _, obstacle := range f.Obstacles {
		findings = append(findings, failf("%s", obstacle.Message).hint("%s", obstacle.Hint))
	}
	if len(findings) == 0 {
		findings = append(findings, okf("none of the %s that are installed is in conflict with one that is there", phrase.Count(len(f.Shipped), "object")))
	}
	return findings
}
