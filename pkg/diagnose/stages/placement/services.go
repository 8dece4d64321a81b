package placement

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/stages/placement/volume"
	"github.com/gangctl/gangctl/pkg/placement"
)

// neverGoes reports whether a pod stays whatever ends, of a service or of a job that idles. One that is stuck on its way out is another matter.
func neverGoes(c *stage.Context) func(*view.Consumer, *corev1.Pod) bool {
	return func(h *view.Consumer, p *corev1.Pod) bool {
		return (h.Keeps(p) || c.Stalled(h)) && !c.View.Stuck(p)
	}
}

// services finds that what keeps the gang from its place never ends: of each cause who has what on which nodes, and the numbers of the cause.
func services(c *stage.Context, s shortfall) *stage.Finding {
	causes := s.causes
	if len(causes.All) > 0 && causes.First().Constraint == placement.VolumeClaim {
		if f, _ := volume.InUse(c); f != nil {
			return f
		}
	}
	var all []string
	var set []*view.Consumer
	named := func(f *stage.Finding, constraint placement.Constraint, r placement.Room) *stage.Finding {
		if text, names, those := unending(c, usages(c, s.cluster, constraint, r)); text != "" {
			f.Message = text + ": " + f.Message
			set = append(set, slices.DeleteFunc(those, func(h *view.Consumer) bool { return slices.Contains(set, h) })...)
			all = append(all, slices.DeleteFunc(names, func(name string) bool { return slices.Contains(all, name) })...)
		}
		return f
	}
	var f *stage.Finding
	for _, cause := range causes.Ordered() {
		if one := named(s.lack(c, cause), cause.Constraint, c.RoomOf(s.cluster, causes, cause)); f == nil {
			f = one
		} else {
			and(f, one)
			listed(f, one.Details)
		}
	}
	if f == nil { // what binds was not found out in time
		f = named(short(c, s.cluster, causes, s.room, false), placement.Resource(s.room.Resource), s.room)
	}
	f.Become(answer.NodesBusy).As(answer.Blocked, answer.Admin)
	if s.cluster != c.Cluster() {
		f.Detail("nodes that have to be repaired or opened count as if they were")
	}
	if len(causes.All) > 0 && len(all) > 0 && startsWithout(c) { // without causes there is no time for two more searches
		f.Detail("without %s it would start when jobs end, without any action", phrase.Names(all))
	}
	stays := func(h *view.Consumer) bool {
		own := slices.ContainsFunc(c.Gang.Bare, func(p *corev1.Pod) bool { return c.View.Includes(h, p) })
		return own || !c.Evictable(h) || h.Ends && !c.Stalled(h)
	}
	if len(set) > 0 && len(set) <= command.MaxObjects && !slices.ContainsFunc(set, stays) {
		f.Fix(c.Evict(set, stage.TermsOf(c.Gang, c.Request)))
	}
	return rollout(c, f.Fact("services", all))
}

// startsWithout reports whether the gang would start without what never ends once jobs have ended, but not at once.
func startsWithout(c *stage.Context) bool {
	service := neverGoes(c)
	now, after := c.Cleared("without what never goes", service), c.Cleared("without what never goes, after the ends", func(h *view.Consumer, p *corev1.Pod) bool { return service(h, p) || c.EndsAlone(h, p) })
	return !c.Fit(now, nil).Fits() && c.Fit(after, nil).Fits()
}

// unending is the clause for those that never end and use what the gang needs, with their names: Deployment serving/web holds 8 GPUs on n1 and never ends. All
// are empty if there are none.
func unending(c *stage.Context, all []usage) (text string, named []string, set []*view.Consumer) {
	type neverGoing struct{}
	never := neverGoes(c)
	those := c.OthersAmong(view.Once(c.View, neverGoing{}, func() []*view.Consumer {
		return slices.DeleteFunc(slices.Clone(c.View.Consumers()), func(h *view.Consumer) bool {
			return h.DaemonSet || !slices.ContainsFunc(h.Pods, func(p *corev1.Pod) bool { return never(h, p) })
		})
	}))
	application := c.Application()
	those = slices.Concat(application, slices.DeleteFunc(slices.Clone(those), func(h *view.Consumer) bool { return slices.Contains(application, h) }))
	for _, u := range all {
		var names []string
		var pods []*corev1.Pod
		for _, h := range those {
			stay := slices.DeleteFunc(slices.Clone(h.Pods), func(p *corev1.Pod) bool {
				return !u.uses(p) || !never(h, p) && (c.View.Stuck(p) || !slices.Contains(application, h))
			})
			if len(stay) == 0 {
				continue
			}
			pods = append(pods, stay...)
			if !slices.Contains(set, h) {
				set = append(set, h)
			}
			switch {
			case c.Stalled(h):
				names = append(names, c.Title(h)+" (idle)")
			case slices.Contains(application, h):
				names = append(names, c.Title(h)+" (which ends only after it)")
			case h.Ends:
				names = append(names, "what "+c.Title(h)+" leaves when it ends (cleanPodPolicy None)")
			default:
				names = append(names, c.Title(h))
			}
		}
		if len(names) == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s %s and never %s", phrase.Names(names), u.clause(len(names), pods), phrase.Verb(len(names), "ends", "end"))
		named = append(named, names...)
	}
	return text, named, set
}
