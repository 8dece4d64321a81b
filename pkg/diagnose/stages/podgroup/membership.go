package podgroup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect"
)

const (
	// maxName is how much is written of a name that tenants wrote, in bytes.
	maxName = 64
	// noGroup is what a pod names that names none.
	noGroup = "no group"
	// maxOutside is how many members that do not count are listed for programs.
	maxOutside = 20
)

// outside are members whose pods do not count for the gang, with one reason: they name another scheduler, or another group, or none.
type outside struct {
	scheduler string // empty if it is the group
	why       string
	members   []string
	first     *corev1.Pod
}

// membership finds that too few members count for the gang: each pod names a group and a scheduler by itself, and its scheduler counts those that name both. One that
// another scheduler has placed counts.
func membership(c *stage.Context, out *stage.Result) {
	g := c.Gang
	reader, ok := dialect.ReaderOf(g.Named.Dialect)
	if !ok || reader.Implied || g.Named.Name == "" || g.End != nil {
		return
	}
	scheduler := commonScheduler(c)
	all, named := outsiders(g, reader, scheduler)
	if !named { // no pod names it: the job owns it
		return
	}
	if all = apart(c, out, all, scheduler); len(all) == 0 {
		return
	}
	var names, schedulers []string
	for _, o := range all {
		names = append(names, o.members...)
		if o.scheduler != "" {
			schedulers = append(schedulers, o.scheduler)
		}
	}
	counts, needs := g.Total()-int32(len(names)), g.Min-g.Apart
	message := fmt.Sprintf("%d of %d members count for %s, and it needs %d: %s", counts, g.Total(), stage.DescribeGroup(*g.Decl), needs, phrase.NamesOf(all, outside.String))
	unserved := len(all) <= component.MaxSchedulers &&
		!slices.ContainsFunc(all, func(o outside) bool { return o.scheduler == "" || !component.Absent(c.View, g, o.scheduler) })
	if counts >= needs || unserved { // what is wrong then is the scheduler's name
		out.Note("%s", message)
		return
	}
	f := stage.Found(answer.BelowQuorum, "%s", message).As(answer.Blocked, answer.User).
		Fact("counted", counts).Fact("needed", needs).Fact("outside", names[:min(len(names), maxOutside)]).Fact("scheduler", scheduler).
		Run(c.Kubectl("get", "pods", "-o", "custom-columns=NAME:.metadata.name,SCHEDULER:.spec.schedulerName,LABELS:.metadata.labels,ANNOTATIONS:.metadata.annotations"))
	if len(schedulers) < len(all) {
		f.Detail("a pod names its group itself: %s", component.HowNamed(*g.Decl))
		for _, o := range all {
			if carried := component.Carried([]*corev1.Pod{o.first}); o.why == noGroup && carried != "" {
				f.Detail("%s", carried)
			}
		}
	}
	f.Detail("change it in the template of the pods, and submit again: what a pod names stays as it is")
	if len(schedulers) == len(all) {
		f.Fix(refusal.Rename(g, "schedulerName", phrase.Names(schedulers), scheduler, func(spec *corev1.PodSpec) { spec.SchedulerName = scheduler }, refusal.Refusal{}))
	}
	out.Add(f)
}

// apart remarks which members another scheduler, which lives, will place one by one, and returns the others: those count once they are placed. Our own scheduler
// never counts pods of another one.
func apart(c *stage.Context, out *stage.Result, all []outside, scheduler string) []outside {
	if component.Ours(c.View, scheduler) {
		return all
	}
	var later, rest []outside
	for i, o := range all {
		if i < component.MaxSchedulers && o.lives(c) {
			later = append(later, o)
		} else {
			rest = append(rest, o)
		}
	}
	if len(later) > 0 {
		out.Note("%s: placed apart from the gang, one by one", phrase.NamesOf(later, outside.String))
	}
	return rest
}

// lives reports whether it is another scheduler, and one that works.
func (o outside) lives(c *stage.Context) bool {
	if o.scheduler == "" {
		return false
	}
	s := component.FindScheduler(c.View, o.scheduler, c.Gang.Meta.Namespace)
	return !s.LastSeen.IsZero() && !s.Down(c.View.Now)
}

// outsiders are the members whose pods do not count, by reason; named reports whether a pod names the gang's group.
func outsiders(g *gang.Gang, reader gang.Reader, scheduler string) (all []outside, named bool) {
	for _, m := range g.Members {
		if m.Pod == nil || m.State == gang.Succeeded || m.State == gang.Failed {
			continue
		}
		o := outside{first: m.Pod}
		switch name, ok := reader.GroupOf(m.Pod); {
		case !ok:
			o.why = noGroup
		case name != g.Named.Name:
			o.why = fmt.Sprintf("group %q", phrase.Shorten(name, maxName))
		case m.Pod.Spec.NodeName == "" && gang.SchedulerName(m.Pod) != scheduler:
			named, o.scheduler = true, phrase.Shorten(gang.SchedulerName(m.Pod), maxName)
			o.why = fmt.Sprintf("scheduler %q", o.scheduler)
		default:
			named = true
			continue
		}
		i := slices.IndexFunc(all, func(other outside) bool { return other.why == o.why })
		if i < 0 {
			i, all = len(all), append(all, o)
		}
		all[i].members = append(all[i].members, m.Name())
	}
	return all, named
}

func (o outside) String() string {
	return fmt.Sprintf("%s %s %s", phrase.Names(o.members), phrase.Verb(len(o.members), "names", "name"), o.why)
}

// commonScheduler is the one that places the gang, of those that members without a node name: one that is known to read what declares it, or else the one that most name.
func commonScheduler(c *stage.Context) string {
	count := map[string]int{}
	for _, m := range c.Gang.Members {
		if m.Pod != nil && m.Pod.Spec.NodeName == "" {
			count[gang.SchedulerName(m.Pod)]++
		}
	}
	if len(count) < 2 {
		return c.Gang.Scheduler
	}
	reads := func(name string) int {
		if component.Reads(c.View, c.Gang.Decl.Key.Dialect, name) {
			return 1
		}
		return 0
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	return slices.MaxFunc(names[:min(len(names), component.MaxSchedulers)], func(a, b string) int {
		return cmp.Or(cmp.Compare(reads(a), reads(b)), cmp.Compare(count[a], count[b]))
	})
}
