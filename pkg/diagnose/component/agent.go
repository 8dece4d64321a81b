package component

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// Agent is the DaemonSet of the agent that takes a startup taint away from a node once it runs there, such as node.cilium.io/agent-not-ready: that of the volume driver that the
// domain of the taint's key names, or one that bears the name of that domain; nil if none is like it.
func Agent(v *view.View, taint string) *appsv1.DaemonSet {
	domain, _, qualified := strings.Cut(taint, "/")
	labels := strings.Split(domain, ".")
	if !qualified || len(labels) < 2 {
		return nil
	}
	if strings.Contains(domain, CSI) {
		return Driver(v, domain, CSI)
	}
	name := labels[len(labels)-2]
	if strings.Contains(name, "k8s") || name == "kubernetes" { // which names no agent
		return nil
	}
	for _, d := range v.Snap.DaemonSets {
		if names, _ := namesIn(d.Name, &d.Spec.Template.Spec); strings.Contains(names, name) {
			return d
		}
	}
	return nil
}

// CloudTaint is the taint of a node that the controller of its cloud has not taken in yet.
const CloudTaint = "node.cloudprovider.kubernetes.io/uninitialized"

// CloudControllers are the Deployments of what takes nodes in for a cloud, and takes [CloudTaint] away from them. There is none where whoever runs the cluster keeps it elsewhere.
func CloudControllers(v *view.View) []*appsv1.Deployment {
	type cloudControllers struct{}
	return view.Once(v, cloudControllers{}, func() []*appsv1.Deployment {
		called := slices.DeleteFunc(slices.Clone(v.Snap.Deployments), func(d *appsv1.Deployment) bool {
			names, _ := namesIn(d.Name, &d.Spec.Template.Spec)
			return !strings.Contains(names, "cloud-controller")
		})
		return Trusted(v, rbac.Component{Homes: []string{"kube-system"}, Acts: []rbacv1.PolicyRule{right("", "nodes", "update"), right("", "nodes", "patch")}}, called)
	})
}
