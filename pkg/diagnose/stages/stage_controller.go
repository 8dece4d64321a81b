package stages

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/setup/argv"
)

// controller looks whether somebody turns the job into pods.
func (c *climb) controller() state {
	g := c.g
	c.kueueController()
	if len(g.Reader.Controller.Images) == 0 {
		return okf("run by Kubernetes itself")
	}
	pending := !g.Seen || g.Count(gang.Missing) > 0 && !g.Suspended
	if !pending || c.held {
		return ok
	}
	age := c.w.Age(g.Meta.CreationTimestamp.Time)
	all := c.operators()
	operators, others := c.handling(all)
	switch {
	case c.w.Assumed && !g.Seen:
		// A job that was only just assumed to be submitted: what counts is that somebody is there.
		switch {
		case len(operators) > 0 && allDown(operators):
			c.add(*c.operatorDown(operators[0], age))
		case len(operators) == 0 && len(c.w.Snap.Deployments) > 0 && c.w.Snap.CanList("deployments.apps", ""):
			c.add(*c.operatorMissing(age, others))
		}
	case len(all) == 0 && c.denied("deployments.apps", ""):
		return unknown("deployments may not be listed")
	case len(operators) == 0 && age > operatorNotices:
		c.held = true
		c.add(*c.operatorMissing(age, others))
	case len(operators) > 0 && allDown(operators):
		c.held = true
		c.add(*c.operatorDown(operators[0], age))
	case len(operators) > 0 && !g.Seen && age > operatorNotices && c.leaseOld(operators[0]) != nil:
		c.held = true
		c.add(*c.leaderLost(operators[0], c.leaseOld(operators[0])))
	case len(operators) > 0 && !g.Seen && age > operatorSilent:
		c.held = true
		c.add(*c.operatorSilent(operators[0], age))
	}
	c.operatorRights()
	return ok
}

// kueueController: a job that Kueue suspends waits for a controller that may be down itself.
func (c *climb) kueueController() {
	if !c.g.Suspended || !c.heldByKueue() {
		return
	}
	var all []*appsv1.Deployment
	for _, d := range c.w.Snap.Deployments {
		if slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(container corev1.Container) bool { return repository(container.Image) == "kueue" }) {
			all = append(all, d)
		}
	}
	if len(all) > 0 && allDown(all) {
		c.add(*c.operatorDown(all[0], c.w.Age(c.g.Meta.CreationTimestamp.Time)))
	}
}

// operators are the Deployments of the job's controller.
func (c *climb) operators() []*appsv1.Deployment {
	var all []*appsv1.Deployment
	for _, d := range c.w.Snap.Deployments {
		for _, container := range d.Spec.Template.Spec.Containers {
			if slices.ContainsFunc(c.g.Reader.Controller.Images, func(part string) bool { return strings.Contains(repository(container.Image), part) }) {
				all = append(all, d)
				break
			}
		}
	}
	return all
}

// handling are the operators that may look at the job, and why the others do not: their flags keep them to another
// namespace, or to other kinds.
func (c *climb) handling(all []*appsv1.Deployment) (operators []*appsv1.Deployment, others []string) {
	for _, d := range all {
		why := ""
		for _, container := range d.Spec.Template.Spec.Containers {
			if ns := flag(container, "namespace"); ns != "" && ns != c.g.Meta.Namespace {
				why = fmt.Sprintf("%s/%s looks at only namespace %s (--namespace=%s)", d.Namespace, d.Name, ns, ns)
			}
			kinds := argv.Values(container, "enable-scheme")
			if len(kinds) > 0 && !slices.ContainsFunc(kinds, func(k string) bool { return strings.EqualFold(k, c.g.Kind.Kind) }) {
				why = fmt.Sprintf("%s/%s handles only %s (--enable-scheme)", d.Namespace, d.Name, strings.Join(kinds, ", "))
			}
			for _, part := range sortedKeys(c.g.Reader.Controller.Versions) {
				versions := c.g.Reader.Controller.Versions[part]
				if strings.Contains(repository(container.Image), part) && !slices.Contains(versions, c.g.Kind.Version) {
					why = fmt.Sprintf("%s/%s handles %ss of %s only, and this one is of %s, for the %s", d.Namespace, d.Name, c.g.Kind.Kind, strings.Join(versions, ", "), c.g.Kind.Version, c.g.Reader.Controller.Name)
				}
			}
		}
		if why == "" {
			operators = append(operators, d)
		} else {
			others = append(others, why)
		}
	}
	return operators, others
}

// leaseOld is the lease by which the operator elects its leader, if nobody has renewed it for long.
func (c *climb) leaseOld(d *appsv1.Deployment) *coordinationv1.Lease {
	var newest *coordinationv1.Lease
	for _, l := range c.w.Snap.Leases {
		its := l.Name == d.Name || slices.ContainsFunc(c.g.Reader.Controller.Images, func(part string) bool { return strings.Contains(l.Name, part) })
		if l.Namespace == d.Namespace && its && l.Spec.RenewTime != nil && (newest == nil || newest.Spec.RenewTime.Before(l.Spec.RenewTime)) {
			newest = l
		}
	}
	if newest == nil || c.w.Age(newest.Spec.RenewTime.Time) <= deadAfter {
		return nil
	}
	return newest
}

// repository is the last part of an image's name, without tag and digest.
func repository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	image = image[strings.LastIndexByte(image, '/')+1:]
	name, _, _ := strings.Cut(image, ":")
	return name
}

func allDown(deployments []*appsv1.Deployment) bool {
	return !slices.ContainsFunc(deployments, func(d *appsv1.Deployment) bool { return d.Status.ReadyReplicas > 0 })
}

func wanted(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}
