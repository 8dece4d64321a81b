package podgroup

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// unread finds that the group object which the pods name is of a kind that their scheduler does not read, while it waits for one of the same name that is not there: dialects
// share labels and annotations.
func unread(c *stage.Context, out *stage.Result) {
	g, d := c.Gang, c.Gang.Decl
	pods := g.Pods()
	if d.Kind.Kind == "" || len(pods) == 0 || g.Count(gang.Pending, gang.Gated, gang.Missing) == 0 || component.IsOurs(c.View, g.Scheduler) {
		return
	}
	if by, of, ok := lacks(c, pods[0]); ok {
		f := stage.Found(answer.PodGroupMissing, "scheduler %s reads PodGroup.%s %s, which does not exist in namespace %s: %s of that name is none that it reads", g.Scheduler, of, d.Key.Name, d.Key.Namespace, stage.DescribeGroup(*d)).
			Fact("podGroup", d.Key.Name).Fact("dialect", string(by)).Fact("unread", stage.GroupKind(*d)).Run(c.Kubectl("get", "podgroups."+of, "-o", "wide"))
		out.Add(createGroup(c, gang.Key{Dialect: by, Namespace: d.Key.Namespace, Name: d.Key.Name}, f))
	}
}

// lacks is the dialect in which a scheduler knows the group that a pod names, with the API group of its objects, where there is no such object.
func lacks(c *stage.Context, pod *corev1.Pod) (by gang.Dialect, of string, ok bool) {
	d, scheduler := c.Gang.Decl, c.Gang.Scheduler
	if d.Key.Dialect == gang.SchedulerPlugins { // one release reads a label with the objects of its own API group
		if pair := schedulerplugins.GroupOfLabel(pod); pair != "" && pair != d.Kind.Group && !component.Bypassed(c.View, c.Gang) {
			return gang.SchedulerPlugins, pair, true
		}
		return "", "", false
	}
	for _, r := range dialect.Readers() {
		name, names := r.GroupOf(pod)
		key := gang.Key{Dialect: r.Dialect, Namespace: d.Key.Namespace, Name: name}
		if names && r.Dialect != d.Key.Dialect && needsObject(r.Dialect) && dialect.Affinity(r, scheduler) > 0 && c.View.Group(key) == nil {
			return r.Dialect, r.Kinds[0].Group, true
		}
	}
	return "", "", false
}
