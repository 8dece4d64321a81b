package queue

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/dialect/koordinator"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// koordinatorQuota finds that the ElasticQuota of Koordinator that the pods name does not let the gang start, and reports whether it is seen. All pods count that name it and have a
// node. How much of max it may use for now Koordinator computes from what all quotas request: that counts while the scheduler reports that it is short.
func koordinatorQuota(c *stage.Context, out *stage.Result) (seen bool) {
	name := queueing.KoordinatorQuota(c.Gang)
	if name == "" {
		return false
	}
	object := queueing.KoordinatorObject(c.View, name)
	if object == nil {
		for _, kind := range schedulerplugins.QuotaKinds() {
			out.Denied(c, "elasticquotas."+kind.Group, "")
		}
		return false
	}
	_, reported := quotaReport(c)
	if !reported && c.Gang.Scheduler != koordinator.SchedulerName {
		return false
	}
	q := elasticQuota{Unstructured: object, title: "Koordinator's ElasticQuota " + name, use: usedOf(c, name)}
	consumers := consumersBy(c, "quota of Koordinator", queueing.KoordinatorQuotaOf)[name]
	q.users = func(resource corev1.ResourceName) []*view.Consumer {
		return slices.DeleteFunc(slices.Clone(consumers), func(h *view.Consumer) bool { return h.Total(resource) == 0 })
	}
	need := needs(c)
	delete(need, corev1.ResourcePods)
	f := aboveMax(c, q, need)
	if f == nil && (reported || c.View.Assumed) { // what is assumed may have no pods yet that it is reported of
		f = aboveRuntime(c, q, need)
	}
	if f != nil {
		out.Add(f)
	}
	return true
}

// usedOf is what pods with a node request that count for a quota of Koordinator. It is the same for all gangs.
func usedOf(c *stage.Context, name string) map[corev1.ResourceName]int64 {
	type usedOf struct{}
	return view.Once(c.View, usedOf{}, func() map[string]map[corev1.ResourceName]int64 {
		all := map[string]map[corev1.ResourceName]int64{}
		for _, h := range c.View.Consumers() {
			for _, p := range h.Pods {
				of := queueing.KoordinatorQuotaOf(p)
				if of == "" || !placement.Holds(p) {
					continue
				}
				if all[of] == nil {
					all[of] = map[corev1.ResourceName]int64{}
				}
				for resource, quantity := range request.Of(p) {
					all[of][resource] = request.Sum(all[of][resource], request.Amount(resource, quantity)-request.ByClaims(p, resource))
				}
			}
		}
		return all
	})[name]
}

// consumersBy are those with pods on nodes, by what these name of a kind.
func consumersBy(c *stage.Context, kind string, name func(*corev1.Pod) string) map[string][]*view.Consumer {
	type consumersNaming string
	return view.Once(c.View, consumersNaming(kind), func() map[string][]*view.Consumer {
		by := map[string][]*view.Consumer{}
		for _, h := range c.View.Consumers() {
			for _, p := range h.Pods {
				if of := name(p); of != "" && (len(by[of]) == 0 || by[of][len(by[of])-1] != h) {
					by[of] = append(by[of], h)
				}
			}
		}
		return by
	})
}

// aboveRuntime is the finding that more would be used of a quota of Koordinator than it may for now; nil if it would not.
func aboveRuntime(c *stage.Context, q elasticQuota, need corev1.ResourceList) *stage.Finding {
	e, ok := firstExcess(c, amounts(queueing.KoordinatorRuntime(q.Unstructured)), q.use, need)
	if !ok {
		return nil
	}
	f := stage.Found(answer.QueueQuota, "%s may use %s for now (its runtime), of which %s are used, and the gang needs %s", q.title, phrase.Amount(e.name, e.limit), e.text(e.used), e.text(e.want))
	q.state(f, ".metadata.annotations", e)
	if e.all <= e.limit {
		using(c, f, e.name, e.limit-e.want, q.users(e.name))
		return f
	}
	f.Reported = true // what it would be for another size is not known
	f.As(answer.Blocked, answer.Admin).Message += ": no end of what uses the quota is enough"
	f.Detail("Koordinator computes the runtime from min, max and what all quotas request: it should give at least min where pods request that")
	for _, d := range component.FindScheduler(c.View, c.Gang.Scheduler, c.Gang.Meta.Namespace).Deployments {
		f.Run(command.DeploymentLog(d))
	}
	return f
}
