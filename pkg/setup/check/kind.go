package check

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/install"
	manifests "github.com/gangctl/gangctl/install/operator"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/setup/operator"
	"github.com/gangctl/gangctl/pkg/submit/choose"
)

// kindGangs reports of each kind of job whether it would be a gang here: whether it is served, whether anything makes its pods, and which
// scheduler starts them together.
func kindGangs(f *Facts) []Finding {
	var findings []Finding
	var absent []string
	for _, r := range kind.Readers() {
		if r.Group != batchv1.GroupName && !f.View.Snap.Serves(schema.GroupResource{Group: r.Group, Resource: r.Resource}, r.Kind) {
			absent = append(absent, r.Title())
			continue
		}
		findings = append(findings, kindGang(f, r))
	}
	if len(absent) > 0 {
		findings = append(findings, okf("not served: %s", strings.Join(absent, ", ")))
	}
	return findings
}

func kindGang(f *Facts, r gang.JobReader) Finding {
	by, how := gangsOf(f, r)
	controller := controllerOf(f, r)
	switch {
	case controller == "":
		why, hint := r.Controller.Name+" does not run here", component.Install(r)
		for _, d := range component.ControllersOf(f.View, r) {
			why = fmt.Sprintf("Deployment %s/%s handles other kinds only (--enable-scheme)", d.Namespace, d.Name)
			if !manifests.Ours(d) {
				hint = fmt.Sprintf("add --enable-scheme=%s to its arguments: kubectl -n %s edit deployment %s", strings.ToLower(r.Kind), d.Namespace, d.Name)
			}
		}
		return warnf("%s: nothing is seen that makes pods of it: %s", r.Title(), why).hint("%s", hint)
	case by == "":
		return warnf("%s: no gang: %s, and its pods would start one by one", r.Title(), how).hint("%s", installHint)
	}
	return okf("%s: a gang of scheduler %s, %s; pods are made by %s", r.Title(), by, how, controller)
}

// controllerOf is the controller of a kind of job; empty if nothing is seen.
func controllerOf(f *Facts, r gang.JobReader) string {
	if len(r.Controller.Images) == 0 {
		return "Kubernetes itself"
	}
	deployed := component.ControllersOf(f.View, r)
	for _, d := range deployed {
		if o, ok := operator.Of(d); ok && !o.Handles(r.Resource) {
			continue // it has no controller of this kind
		}
		return fmt.Sprintf("Deployment %s/%s", d.Namespace, d.Name)
	}
	for _, job := range f.View.Jobs() {
		if job.Kind.GroupKind() == r.GroupKind && job.Seen {
			return "a controller that is no Deployment"
		}
	}
	// The webhook is that of the Deployment where there is one.
	if r.Controller.Install == "" && len(deployed) == 0 && len(f.operators()) == 0 && component.Validated(f.View, r) {
		return "an operator that is no Deployment"
	}
	return ""
}

// gangsOf is the scheduler that would start a job of a kind together, and how it knows the gang; or empty, and why there is none.
func gangsOf(f *Facts, r gang.JobReader) (scheduler, how string) {
	if name, _ := component.SchedulerOfOperator(f.View, r); name != "" {
		if find(f, name).alive(f) {
			return name, "whose group its controller makes"
		}
		return "", fmt.Sprintf("its controller makes groups for scheduler %s, which gives no sign of life", name)
	}
	own := slices.ContainsFunc(aliveNames(f), func(name string) bool { return readsGangs(f, name) && ownName(f, name) })
	if r.Dialect != "" {
		if own {
			return install.SchedulerInstance, "which reads the labels of its controller"
		}
		return "", fmt.Sprintf("only scheduler %s reads the labels of its controller, and it gives no sign of life", install.SchedulerInstance)
	}
	for _, w := range choose.Order() {
		reader, _ := dialect.ReaderOf(w.Dialect)
		if w.Object != nil && !slices.ContainsFunc(reader.Kinds, func(k gang.Served) bool { return servesKind(f, k) }) {
			continue
		}
		how := fmt.Sprintf("in dialect %s", w.Dialect)
		if own && w.Dialect != gang.Native {
			return install.SchedulerInstance, how
		}
		if by := readers(f, reader); len(by) > 0 {
			return by[0], how
		}
	}
	return "", "no scheduler of gangs gives a sign of life"
}
