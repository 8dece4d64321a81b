package planner

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// judge remembers whether the engine enforces every rule that a proof rests on.
type judge struct {
	once     sync.Once
	complete bool
}

// enforced are the filters that a proof rests on.
var enforced = []string{
	names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts, names.NodeResourcesFit, names.InterPodAffinity,
}

// complete tells whether the profile enforces every rule that a proof rests on. A configuration may switch filters off, and have
// resources ignored; what is impossible under the rules may then be possible for the engine.
func (pl *Plugin) complete() bool {
	pl.judge.once.Do(func() {
		lister, ok := pl.handle.(interface {
			ListPlugins() *schedulerconfig.Plugins
		})
		if !ok {
			return
		}
		on := sets.New[string]()
		for _, f := range lister.ListPlugins().Filter.Enabled {
			on.Insert(f.Name)
		}
		pl.judge.complete = on.HasAll(enforced...) && !pl.planner.ignoresResources(pl.handle.ProfileName())
	})
	return pl.judge.complete
}

// ignoresResources tells whether a profile is configured not to look at some resources. The engine adds those that an extender
// takes care of to the same configuration.
func (p *Planner) ignoresResources(profile string) bool {
	at := slices.IndexFunc(p.profiles, func(s schedulerconfig.KubeSchedulerProfile) bool { return s.SchedulerName == profile })
	if at < 0 {
		return true // not known, so nothing is certain
	}
	for _, c := range p.profiles[at].PluginConfig {
		if a, ok := c.Args.(*schedulerconfig.NodeResourcesFitArgs); ok && len(a.IgnoredResources)+len(a.IgnoredResourceGroups) > 0 {
			return true
		}
	}
	return false
}
