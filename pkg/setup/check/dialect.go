package check

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

// unservedDialects reports formats that the API server serves and no scheduler reads: their pods stay pending, without any event.
func unservedDialects(f *Facts) []Finding {
	own := slices.ContainsFunc(aliveNames(f), func(name string) bool { return readsGangs(f, name) && ownName(f, name) })
	var findings []Finding
	var read []string
	for _, r := range dialect.Readers() {
		groups, count := 0, 0
		for _, k := range r.Kinds {
			if servesKind(f, k) {
				groups++
				count += len(f.View.Snap.Custom[k.GroupKind])
			}
		}
		if groups == 0 || r.Dialect == gang.Kueue { // Kueue admits jobs; it places nothing
			continue
		}
		by := readers(f, r)
		switch {
		case len(by) > 0:
			read = append(read, fmt.Sprintf("%s by %s", r.Dialect, phrase.Names(by)))
		case own:
			read = append(read, fmt.Sprintf("%s by %s", r.Dialect, install.SchedulerInstance))
		case count > 0:
			findings = append(findings, failf("no scheduler reads the format %s, in which %s declared", r.Dialect, phrase.Count(count, "gang")+" "+phrase.Verb(count, "is", "are")).hint("%s", serveHint(r)))
		default:
			findings = append(findings, warnf("the format %s is served, and no scheduler reads it", r.Dialect).hint("%s", serveHint(r)))
		}
	}
	if len(read) > 0 {
		findings = append(findings, okf("%s", strings.Join(read, "; ")))
	}
	return findings
}

// servesKind reports whether a kind is served. Kubernetes' own is not among what was discovered unless it is used.
func servesKind(f *Facts, k gang.Served) bool {
	return f.View.Snap.Serves(schema.GroupResource{Group: k.Group, Resource: k.Resource}, k.Kind)
}

// readers are the schedulers alive that are known for a dialect.
func readers(f *Facts, r gang.Reader) []string {
	var all []string
	for _, name := range r.Schedulers {
		if find(f, name).alive(f) {
			all = append(all, name)
		}
	}
	return all
}

// ownName reports whether a schedulerName is one of gangctl's own scheduler, which reads every format.
func ownName(f *Facts, name string) bool {
	return name == install.SchedulerInstance || slices.ContainsFunc(served(f, name), func(d *appsv1.Deployment) bool { return slices.Contains(ours(f), d) })
}

// serveHint is the hint by which gangctl's scheduler reads a dialect, for pods that name the dialect's own scheduler.
func serveHint(r gang.Reader) string {
	if len(r.Schedulers) == 0 || slices.Contains(r.Schedulers, install.SchedulerInstance) {
		return installHint
	}
	return installHint + " --serve " + r.Schedulers[0]
}

// schedulersFight: two schedulers that answer to one name bind the same pods; a gang whose members name two schedulers is whole
// for neither; and two writers of one group's status overwrite each other.
func schedulersFight(f *Facts) []Finding {
	var findings []Finding
	for _, name := range names(f) {
		all := running(served(f, name))
		if len(all) > 1 {
			findings = append(findings, failf("%d Deployments answer to schedulerName %s and bind the same pods: %s", len(all), name, deploymentNames(all)).
				hint("keep one of them: kubectl -n %s scale deployment/%s --replicas=0", all[0].Namespace, all[0].Name))
		}
	}
	findings = append(findings, tornGangs(f)...)
	for _, d := range running(f.View.Snap.Deployments) {
		for _, c := range d.Spec.Template.Spec.Containers {
			if strings.Contains(c.Image, "scheduler-plugins/controller") && find(f, install.SchedulerInstance).known() {
				findings = append(findings, warnf("Deployment %s/%s (scheduler-plugins' controller) writes the status of PodGroups, which the gang scheduler writes, too", d.Namespace, d.Name).
					hint("stop it once no job uses scheduler-plugins: kubectl -n %s scale deployment/%s --replicas=0", d.Namespace, d.Name))
			}
		}
	}
	if len(findings) == 0 {
		findings = append(findings, okf("each schedulerName has one scheduler, and each gang one schedulerName"))
	}
	return findings
}

// tornGangs are gangs whose members name more than one scheduler.
func tornGangs(f *Facts) []Finding {
	schedulersOf := map[gang.Key]map[string]bool{}
	for _, p := range f.View.Snap.Pods {
		if p.Status.Phase == "Succeeded" || p.Status.Phase == "Failed" {
			continue
		}
		for _, r := range dialect.Readers() {
			if name, ok := r.GroupOf(p); ok && r.Dialect != gang.Kueue {
				key := gang.Key{Dialect: r.Dialect, Namespace: p.Namespace, Name: name}
				if schedulersOf[key] == nil {
					schedulersOf[key] = map[string]bool{}
				}
				schedulersOf[key][p.Spec.SchedulerName] = true
				break
			}
		}
	}
	byName := map[string][]string{}
	for key, schedulers := range schedulersOf {
		if len(schedulers) > 1 {
			byName[key.Namespace+"/"+key.Name] = sortedKeys(schedulers)
		}
	}
	var findings []Finding
	for _, name := range sortedKeys(byName) {
		findings = append(findings, failf("the members of gang %s name %d schedulers: %s; none of them sees it whole", name, len(byName[name]), strings.Join(byName[name], ", ")).
			hint("give all roles of the job one schedulerName, and submit it again"))
	}
	return findings
}

func deploymentNames(all []*appsv1.Deployment) string {
	var names []string
	for _, d := range all {
		names = append(names, d.Namespace+"/"+d.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
