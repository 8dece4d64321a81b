package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/setup/imagename"
)

const (
	// oldestForScheduler is the first minor release of Kubernetes 1 that serves all that kube-scheduler's library requests
	// (resource.k8s.io/v1). gangctl itself is content with less.
	oldestForScheduler = 34
	// kubeletLag is how many minor releases a kubelet may be behind the API server
	// (https://kubernetes.io/releases/version-skew-policy/).
	kubeletLag = 3
)

func apiReady(f *Facts) []Finding {
	if f.Unready != "" {
		return []Finding{failf("the API server is not ready: %s", f.Unready).hint("kubectl get --raw '/readyz?verbose'")}
	}
	return []Finding{okf("Kubernetes %s", f.View.Snap.Server.Version)}
}

func serverVersion(f *Facts) []Finding {
	server, err := version.ParseGeneric(f.View.Snap.Server.Version)
	if err != nil {
		return []Finding{warnf("the API server's version %q cannot be read", f.View.Snap.Server.Version)}
	}
	built, known := builtFor(f)
	switch {
	case unreleased(server):
		return []Finding{okf("Kubernetes %s: a build that does not report its release", f.View.Snap.Server.Version)}
	case server.Minor() < oldestForScheduler:
		return []Finding{warnf("Kubernetes %s is too old for the gang scheduler, which needs v1.%d or later; gangctl's other commands work", server, oldestForScheduler).
			hint("gang scheduling here needs another scheduler that reads PodGroups: gangctl submit --scheduler NAME")}
	case known && server.Minor() > built+1:
		return []Finding{warnf("Kubernetes %s is newer than what this gangctl was made for (v1.%d)", server, built).hint("get a later release of gangctl")}
	case !known:
		return []Finding{okf("Kubernetes %s", server)}
	}
	return []Finding{okf("Kubernetes %s, made for v1.%d", server, built)}
}

// unreleased reports whether a version is what a build without a release calls itself (v0.0.0-master+…).
func unreleased(v *version.Version) bool { return v.Major() == 0 && v.Minor() == 0 }

// builtFor is the minor release of Kubernetes 1 whose client libraries gangctl links: v0.37.1 is that of v1.37.
func builtFor(f *Facts) (minor uint, known bool) {
	v, err := version.ParseGeneric(f.Version.Kubernetes)
	if err != nil {
		return 0, false
	}
	return v.Minor(), true
}

func kubeletVersions(f *Facts) []Finding {
	server, err := version.ParseGeneric(f.View.Snap.Server.Version)
	if err != nil {
		return []Finding{warnf("the API server's version %q cannot be read", f.View.Snap.Server.Version)}
	}
	older, newer, seen := map[string][]string{}, map[string][]string{}, []string{}
	for _, n := range f.View.Snap.Nodes {
		kubelet, err := version.ParseGeneric(n.Status.NodeInfo.KubeletVersion)
		if err != nil {
			continue // a node whose kubelet has not reported yet
		}
		text := fmt.Sprintf("v1.%d", kubelet.Minor())
		switch {
		case unreleased(server):
			continue // nothing to compare with
		case kubelet.Minor() > server.Minor():
			newer[text] = append(newer[text], n.Name)
		case kubelet.Minor()+kubeletLag < server.Minor():
			older[text] = append(older[text], n.Name)
		case !slices.Contains(seen, text):
			seen = append(seen, text)
		}
	}
	var findings []Finding
	for _, v := range sortedKeys(newer) {
		findings = append(findings, warnf("kubelets of %s are newer than the API server (%s): %s", v, server, phrase.Names(newer[v])).hint("upgrade the control plane first"))
	}
	for _, v := range sortedKeys(older) {
		findings = append(findings, warnf("kubelets of %s are more than %d releases behind the API server (%s): %s", v, kubeletLag, server, phrase.Names(older[v])).hint("upgrade these nodes"))
	}
	if len(findings) == 0 && len(seen) > 0 {
		slices.Sort(seen)
		findings = append(findings, okf("kubelets of %s", strings.Join(seen, ", ")))
	}
	return findings
}

func schedulerVersion(f *Facts) []Finding {
	var findings []Finding
	for _, d := range ours(f) {
		_, tag := imagename.Split(d.Spec.Template.Spec.Containers[0].Image)
		theirs := cmp.Or(d.Labels[install.LabelVersion], tag)
		switch {
		case theirs == "":
			findings = append(findings, warnf("Deployment %s/%s does not report its version", d.Namespace, d.Name))
		case theirs != labelOf(f.Version.Version) && theirs != f.Version.Version:
			findings = append(findings, warnf("the gang scheduler of Deployment %s/%s is %s, gangctl is %s", d.Namespace, d.Name, theirs, f.Version.Version).
				hint("gangctl upgrade"))
		default:
			findings = append(findings, okf("both are %s", f.Version.Version))
		}
	}
	return findings
}

// labelOf is a version as install writes it into a label.
func labelOf(v string) string {
	carrier := &metav1.ObjectMeta{}
	install.Label(carrier, "", v)
	return carrier.Labels[install.LabelVersion]
}

func operatorVersion(f *Facts) []Finding {
	var findings []Finding
	for _, o := range f.operators() {
		image := o.Container().Image
		switch r := o.Release; {
		case !r.Known():
			findings = append(findings, warnf("the release of Deployment %s cannot be determined from its image %s", o.Name(), image).
				hint("gangctl works with v1.7 to v1.9"))
		case r.Before(1, 0):
			findings = append(findings, failf("Deployment %s is tf-operator %s, which speaks APIs that Kubernetes no longer has", o.Name(), r).
				hint("gangctl install operator; submit -f reads the manifests that were written for it"))
		case r.Before(1, 7):
			findings = append(findings, warnf("Deployment %s is training operator %s: it cannot suspend jobs, and writes other groups than gangctl", o.Name(), r).
				hint("upgrade it to v1.7 or later; until then leave its gang flags off"))
		default:
			findings = append(findings, okf("training operator %s (Deployment %s)", r, o.Name()))
		}
	}
	return findings
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
