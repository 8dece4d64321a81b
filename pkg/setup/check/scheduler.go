package check

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

const installHint = "gangctl install scheduler"

func schedulersAlive(f *Facts) []Finding {
	var findings []Finding
	gangs := false
	for _, name := range names(f) {
		s := find(f, name)
		if !s.known() {
			continue
		}
		gangs = gangs || readsGangs(f, name)
		findings = append(findings, s.state(f))
	}
	own := find(f, install.SchedulerInstance)
	switch {
	case !gangs:
		findings = append(findings, failf("no gang scheduler gives a sign of life: no Deployment, no lease, no event, no pod that it has bound").
			hint("%s; where it runs outside of the cluster, place a gang: gangctl check --smoke", installHint))
	case !own.known():
		findings = append(findings, warnf("gangctl's own scheduler (%s) is not installed, and jobs are submitted to it unless configured otherwise", own.name).
			hint("%s, or name the other one: gangctl submit --scheduler NAME", installHint))
	}
	return findings
}

// state is the condition of a scheduler, with the evidence.
func (s scheduler) state(f *Facts) Finding {
	var signs []string
	for _, d := range s.Deployments {
		signs = append(signs, fmt.Sprintf("Deployment %s/%s %d/%d ready", d.Namespace, d.Name, d.Status.ReadyReplicas, component.Replicas(d)))
	}
	for _, l := range s.Leases {
		signs = append(signs, fmt.Sprintf("lease %s/%s renewed %s ago", l.Namespace, l.Name, phrase.Age(f.View.Age(l.Spec.RenewTime.Time))))
	}
	switch age := f.View.Age(s.bound); {
	case !s.bound.IsZero() && age <= lately:
		signs = append(signs, fmt.Sprintf("bound a pod %s ago", phrase.Age(age)))
	case !s.LastEvent.IsZero():
		signs = append(signs, fmt.Sprintf("last event %s ago", phrase.Age(f.View.Age(s.LastEvent))))
	case s.BoundBefore && len(signs) == 0:
		signs = append(signs, "has bound pods")
	}
	text := s.name + ": " + strings.Join(signs, ", ")
	switch {
	case s.Down(f.View.Now):
		return failf("%s is down: %s", s.name, strings.Join(signs, ", ")).hint("%s", s.look())
	case len(s.Deployments)+len(s.Leases) == 0 && (s.LastSeen.IsZero() || f.View.Age(s.LastSeen) > lately):
		return warnf("%s, and nothing since: whether it lives is unknown", text).hint("place a gang: gangctl check --smoke")
	}
	return okf("%s", text)
}

// look is the command that shows why a scheduler is down.
func (s scheduler) look() string {
	if len(s.Deployments) == 0 {
		return "kubectl -n kube-system get pods"
	}
	d := s.Deployments[0]
	if component.Replicas(d) == 0 {
		return fmt.Sprintf("it is scaled to 0: kubectl -n %s scale deployment/%s --replicas=1", d.Namespace, d.Name)
	}
	return fmt.Sprintf("kubectl -n %s logs deployment/%s --tail=50", d.Namespace, d.Name)
}

func unservedPods(f *Facts) []Finding {
	waiting, where := map[string]int{}, map[string]map[string]bool{}
	for _, p := range f.View.Snap.Pods {
		if p.Spec.NodeName != "" || p.Status.Phase != corev1.PodPending || p.DeletionTimestamp != nil {
			continue
		}
		name := p.Spec.SchedulerName
		if where[name] == nil {
			where[name] = map[string]bool{}
		}
		waiting[name]++
		where[name][p.Namespace] = true
	}
	have := aliveNames(f)
	var findings []Finding
	for _, name := range sortedKeys(waiting) {
		s := find(f, name)
		if s.alive(f) || name == corev1.DefaultSchedulerName && !s.known() { // a managed control plane shows nothing of it
			continue
		}
		what := fmt.Sprintf("%s wait for scheduler %q in %s", phrase.Count(waiting[name], "pod"), name, phrase.Names(sortedKeys(where[name])))
		if s.known() {
			findings = append(findings, failf("%s, which is down", what).hint("%s", s.look()))
			continue
		}
		finding := failf("%s, and no scheduler answers to that name; there are: %s", what, phrase.Names(have))
		switch nearest := suggest.Nearest(name, have); {
		case nearest != "":
			finding = finding.hint("did you mean %s?", nearest)
		case readsGangs(f, name):
			finding = finding.hint("let gangctl's scheduler answer to it: gangctl install scheduler --serve %s", name)
		}
		findings = append(findings, finding)
	}
	if len(findings) == 0 {
		findings = append(findings, okf("%s", waitingText(waiting)))
	}
	return findings
}

func waitingText(waiting map[string]int) string {
	if len(waiting) == 0 {
		return "no pod waits for a node"
	}
	var parts []string
	for _, name := range sortedKeys(waiting) {
		parts = append(parts, fmt.Sprintf("%s for %s", phrase.Count(waiting[name], "pod"), name))
	}
	return strings.Join(parts, ", ")
}

func aliveNames(f *Facts) []string {
	var all []string
	for _, name := range names(f) {
		if find(f, name).alive(f) {
			all = append(all, name)
		}
	}
	return all
}
