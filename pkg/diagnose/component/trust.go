package component

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/setup/operator"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// Schedulers are what gives pods of all namespaces their nodes.
func Schedulers() rbac.Component {
	c := rbac.Component{Homes: []string{"gangctl-system"}, Acts: []rbacv1.PolicyRule{right("", "pods/binding", "create"), right("", "bindings", "create"),
		right("scheduling.run.ai", "bindrequests", "create")}} // KAI leaves the binding to another program
	for _, k := range products {
		c.Homes = append(c.Homes, k.home)
	}
	return c
}

// operators are what handles kinds of job.
func operators(readers ...gang.JobReader) rbac.Component {
	var kinds []rbacv1.PolicyRule
	for _, r := range readers {
		if len(r.Controller.Images) > 0 {
			kinds = append(kinds, right(r.Group, r.Resource))
		}
	}
	return operator.Component([]string{"kubeflow", "mpi-operator"}, kinds...)
}

func right(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// Kueue is the controller that lets jobs wait in queues.
func Kueue() rbac.Component {
	return operator.Component([]string{"kueue-system"}, right("kueue.x-k8s.io", "workloads"))
}

// Autoscaler is what adds and removes nodes.
func Autoscaler() rbac.Component {
	return rbac.Component{Acts: []rbacv1.PolicyRule{right("", "nodes", "update"), right("", "nodes", "delete")}}
}

// policy is what accounts may do in all namespaces; nil where that may not be read. No cluster is without bindings.
func policy(v *view.View) *rbac.Policy {
	if len(v.Snap.ClusterRoles) == 0 || len(v.Snap.ClusterRoleBindings) == 0 {
		return nil
	}
	return &rbac.Policy{ClusterRoles: v.Snap.ClusterRoles, ClusterRoleBindings: v.Snap.ClusterRoleBindings}
}

// Trusted are those of some objects in which a component shows itself: those in namespaces of which administrators have it act on all others.
// What is anywhere else, another user may have written who has that namespace, whatever it is called. To a reader who may not see who may do
// what, it is what is in its usual namespaces; where nothing is there, all.
func Trusted[P metav1.Object](v *view.View, c rbac.Component, all []P) []P {
	p := policy(v)
	type trust struct{ namespace, acts string }
	acts := ""
	for _, r := range c.Acts {
		acts += rbac.String(r) + ";"
	}
	var some []P
	for _, obj := range all {
		namespace := obj.GetNamespace()
		if p == nil && c.Home(namespace) || p != nil && view.Once(v, trust{namespace, acts}, func() bool { return p.Trusts(c, namespace) }) {
			some = append(some, obj)
		}
	}
	if p == nil && len(some) == 0 {
		return all
	}
	return some
}

// Running are the Deployments of a component: those with a container whose image is its; see [Repository].
func Running(v *view.View, c rbac.Component, its func(image string) bool) []*appsv1.Deployment {
	var all []*appsv1.Deployment
	for _, d := range v.Snap.Deployments {
		if slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return its(c.Image) }) {
			all = append(all, d)
		}
	}
	return Trusted(v, c, all)
}

// OfGate is the Deployment behind a scheduling gate: that of the program which the group in the name of the gate is called after; nil if there is none, or a choice. A gate
// of example.com/x is not known to be anyone's.
func OfGate(v *view.View, gate string) *appsv1.Deployment {
	group, _, ok := strings.Cut(gate, "/")
	project, _, _ := strings.Cut(group, ".")
	if !ok || project == "" {
		return nil
	}
	type ofProject string
	return view.Once(v, ofProject(project), func() *appsv1.Deployment {
		all := Running(v, rbac.Component{Acts: []rbacv1.PolicyRule{right("", "pods", "update"), right("", "pods", "patch")}}, func(image string) bool {
			path := strings.Split(strings.ToLower(image), "/")
			return slices.Contains(path[:len(path)-1], project) || strings.HasPrefix(path[len(path)-1], project+"-")
		})
		if len(all) != 1 {
			return nil
		}
		return all[0]
	})
}

// anyOperator is what handles one of all kinds of job that are known.
func anyOperator() rbac.Component { return operators(kind.Readers()...) }

// Strangers reports whether anything outside of the usual namespaces may be a scheduler of one of some names, or names a scheduler itself. To
// see whether it is one takes what accounts may do in all namespaces.
func Strangers(v *view.View, names ...string) bool {
	operator, scheduler := anyOperator(), Schedulers()
	isScheduler := func(d *appsv1.Deployment) bool {
		return slices.ContainsFunc(names, func(name string) bool { return serving(d, name) >= 0 })
	}
	return slices.ContainsFunc(v.Snap.Deployments, func(d *appsv1.Deployment) bool {
		return !scheduler.Home(d.Namespace) && (isScheduler(d) || hasFlag(d, "scheduler-name")) || !operator.Home(d.Namespace) && slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return gangScheduler(c) != "" })
	}) || slices.ContainsFunc(v.Snap.Leases, func(l *coordinationv1.Lease) bool {
		return !scheduler.Home(l.Namespace) && slices.Contains(names, l.Name)
	})
}

func hasFlag(d *appsv1.Deployment, name string) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return Flag(c, name) != "" })
}
