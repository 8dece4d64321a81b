package stages

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// GangScheduler is the name under which a scheduler serves gangs of a dialect here: preferred, unless no Deployment serves that
// name while one serves another. That is the one that an operator gives to its gangs, or one of the program called preferred.
func GangScheduler(w *view.View, d gang.Dialect, preferred string) string {
	for _, name := range append([]string{preferred}, gangSchedulers(w.Snap.Deployments, preferred)...) {
		// Not by its lease, which may be called like the program, whatever name that serves.
		if reads(d, name) && len(FindScheduler(w, name).Deployments) > 0 {
			return name
		}
	}
	return preferred
}

// reads reports whether a scheduler is not known to read another dialect.
func reads(d gang.Dialect, scheduler string) bool {
	for _, r := range dialect.Readers() {
		if r.Dialect == d {
			return dialect.Affinity(r, scheduler) >= 0
		}
	}
	return false
}

// gangSchedulers are the names that Deployments give to schedulers of gangs: operators first.
func gangSchedulers(deployments []*appsv1.Deployment, preferred string) []string {
	var byOperator, deployed []string
	for _, d := range deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if name := flag(container, "gang-scheduler-name"); name != "" && name != "none" {
				byOperator = append(byOperator, name)
			}
			if name := flag(container, "scheduler-name"); name != "" && isA(d, container, preferred) {
				deployed = append(deployed, name)
			}
		}
	}
	return append(byOperator, deployed...)
}

// isA reports whether a container runs the program of a name.
func isA(d *appsv1.Deployment, container corev1.Container, name string) bool {
	return d.Name == name || container.Name == name || strings.Contains(repository(container.Image), name)
}
