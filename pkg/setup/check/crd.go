package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/install/operator"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/kubeflow"
	"github.com/gangctl/gangctl/pkg/gang/kind/mpijob"
	"github.com/gangctl/gangctl/pkg/gang/kind/tfjob"
)

// definition finds a CustomResourceDefinition; nil if there is none.
func definition(f *Facts, name string) *metav1.PartialObjectMetadata {
	i := slices.IndexFunc(f.Definitions, func(d *metav1.PartialObjectMetadata) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return f.Definitions[i]
}

// versions are those in which a resource is served.
func versions(f *Facts, r schema.GroupResource) []string {
	var all []string
	for _, served := range f.View.Snap.Server.Resources {
		if name, v, _ := strings.Cut(served, "/"); name == r.String() {
			all = append(all, v)
		}
	}
	return all
}

// usable reports whether a definition that exists serves the version that gangctl speaks.
func usable(f *Facts, gvr schema.GroupVersionResource) (Finding, bool) {
	d, served := definition(f, gvr.GroupResource().String()), versions(f, gvr.GroupResource())
	switch {
	case d == nil && len(served) == 0:
		return Finding{}, false
	case len(served) == 0:
		return failf("%s exists and is not served", d.Name).hint("see why: kubectl describe crd %s", d.Name), true
	case !slices.Contains(served, gvr.Version):
		return failf("%s is served as %s, gangctl speaks %s", gvr.GroupResource(), strings.Join(served, ", "), gvr.Version).hint("let its owner serve %s, too", gvr.Version), true
	case d == nil:
		return okf("%s/%s is served by an API server of its own", gvr.GroupResource(), gvr.Version), true
	}
	by, mine := owner(d)
	if mine {
		return okf("%s/%s, put there by gangctl", gvr.GroupResource(), gvr.Version), true
	}
	return okf("%s/%s, put there by %s: gangctl uses it and leaves it alone", gvr.GroupResource(), gvr.Version, by), true
}

func podGroups(f *Facts) []Finding {
	finding, found := usable(f, schedulerplugins.GVR())
	if !found {
		return []Finding{failf("%s is not there: submit has nowhere to write gangs", schedulerplugins.CRDName).hint("%s; --dialect labels needs none", installHint)}
	}
	return []Finding{finding}
}

func podGroupsBefore(f *Facts) []Finding {
	finding, found := usable(f, schedulerplugins.GVR())
	if !found {
		return []Finding{okf("%s is not there: install brings it", schedulerplugins.CRDName)}
	}
	return []Finding{finding}
}

// jobKinds looks at the kinds of job that need an operator. One is enough to work with; that TFJobs are missing is reported even where
// others are served, as most of the documentation is about them. Kinds that gangctl installs no operator for are missed by no user, and the further
// ones of the operator by few.
func jobKinds(f *Facts) []Finding {
	var findings []Finding
	var absent []string
	for _, r := range kind.Readers() {
		if r.Group == batchv1.GroupName {
			continue
		}
		finding, found := usable(f, servedAs(f, r))
		switch {
		case found:
			findings = append(findings, finding)
		case slices.Contains(operator.Kinds(), r.Resource) && !isFurther(r):
			absent = append(absent, r.Resource)
		}
	}
	name := tfjob.GVR().GroupResource().String()
	switch {
	case len(findings) == 0:
		return []Finding{failf("%s is not there, and neither is any other kind of job that needs an operator", name).hint("gangctl install operator")}
	case slices.Contains(absent, tfjob.GVR().Resource):
		return append(findings, warnf("%s is not there", name).hint("gangctl install operator"))
	case len(absent) > 0:
		return append(findings, okf("not there: %s; gangctl install operator --kinds %s brings them", strings.Join(absent, ", "), strings.Join(append([]string{tfjob.GVR().Resource}, absent...), ",")))
	}
	return findings
}

// isFurther reports whether a kind of job is one of those that few use: an operator without it lacks nothing.
func isFurther(r gang.JobReader) bool {
	return slices.ContainsFunc(kubeflow.Further(), func(further gang.JobReader) bool { return further.GroupKind == r.GroupKind })
}

// servedAs is a kind of job in the version that gangctl would submit.
func servedAs(f *Facts, r gang.JobReader) schema.GroupVersionResource {
	gvr := schema.GroupVersionResource{Group: r.Group, Version: r.Versions[0], Resource: r.Resource}
	if r.GroupKind != mpijob.Reader().GroupKind {
		return gvr
	}
	for _, version := range mpijob.Versions() {
		if slices.Contains(versions(f, gvr.GroupResource()), version) {
			gvr.Version = version
			break
		}
	}
	return gvr
}

// foreignGroups names the other gang formats and whose they are. They are no fault; their use is reported by other checks.
func foreignGroups(f *Facts) []Finding {
	var findings []Finding
	var seen []string
	for _, r := range dialect.Readers() {
		for _, k := range r.Kinds {
			name := k.Resource + "." + k.Group
			d := definition(f, name)
			if d == nil || name == schedulerplugins.CRDName || slices.Contains(seen, name) {
				continue
			}
			seen = append(seen, name)
			by, _ := owner(d)
			text := fmt.Sprintf("%s: the format of %s, put there by %s", name, failure.Product(k.Group), by)
			if failure.Product(k.Group) == "" {
				text = fmt.Sprintf("%s: put there by %s", name, by)
			}
			if len(versions(f, schema.GroupResource{Group: k.Group, Resource: k.Resource})) == 0 {
				findings = append(findings, warnf("%s; it is not served", text).hint("see why: kubectl describe crd %s", name))
				continue
			}
			findings = append(findings, okf("%s", text))
		}
	}
	return findings
}

// owner is the tool that made an object, and mine whether that was gangctl: by its labels, else by what deployment tools write, else by
// who wrote its fields.
func owner(o *metav1.PartialObjectMetadata) (by string, mine bool) {
	labels, annotations := o.Labels, o.Annotations
	if labels[install.LabelPartOf] == install.PartOf {
		return "gangctl", true
	}
	switch {
	case annotations["meta.helm.sh/release-name"] != "":
		return "Helm release " + annotations["meta.helm.sh/release-namespace"] + "/" + annotations["meta.helm.sh/release-name"], false
	case annotations["argocd.argoproj.io/tracking-id"] != "":
		return "Argo CD (" + annotations["argocd.argoproj.io/tracking-id"] + ")", false
	case labels["kustomize.toolkit.fluxcd.io/name"] != "":
		return "Flux (" + labels["kustomize.toolkit.fluxcd.io/namespace"] + "/" + labels["kustomize.toolkit.fluxcd.io/name"] + ")", false
	case hasLabelPrefix(labels, "operators.coreos.com/"):
		return "an OLM operator", false
	case labels[install.LabelPartOf] != "":
		return labels[install.LabelPartOf], false
	}
	return cmp.Or(writers(o), "another client"), false
}

// writers are those who wrote the object's spec: the API server and others that write conditions do not count.
func writers(o *metav1.PartialObjectMetadata) string {
	var all []string
	for _, m := range o.ManagedFields {
		if m.Subresource == "" && m.Manager != "kube-apiserver" && !slices.Contains(all, m.Manager) {
			all = append(all, m.Manager)
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

func hasLabelPrefix(labels map[string]string, prefix string) bool {
	for key := range labels {
		if len(key) > len(prefix) && key[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}
