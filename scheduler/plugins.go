package scheduler

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	upstream "k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/aging"
	"github.com/gangctl/gangctl/scheduler/plugins/belowmin"
	"github.com/gangctl/gangctl/scheduler/plugins/binding"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/plugins/crossnode"
	"github.com/gangctl/gangctl/scheduler/plugins/packing"
	"github.com/gangctl/gangctl/scheduler/plugins/planner"
	"github.com/gangctl/gangctl/scheduler/plugins/preemption"
	"github.com/gangctl/gangctl/scheduler/plugins/queuesort"
	"github.com/gangctl/gangctl/scheduler/plugins/replacement"
)

// parts are the controllers and ledgers that the plugins of all profiles share, and the rest of the scheduler runs. There is one
// of each, however many profiles there are.
type parts struct {
	handle       *engine.Handle
	panics       *engine.Panics
	statuses     *engine.PodStatusWriter
	planner      *planner.Planner
	claims       *claims.Ledger
	replacement  *replacement.Tracker
	aging        *aging.Controller
	queueSort    *queuesort.Sorter
	belowMinimum *belowmin.Controller
	binding      *binding.Barrier
	preemption   *preemption.Preemptor
	packing      *packing.Counters
	crossNode    *crossnode.Checks
}

// newParts returns the parts of a scheduler that serves some profiles.
func newParts(g *gangs, profiles []schedulerconfig.KubeSchedulerProfile) parts {
	plans := planner.New(g.handle, g.attempts, g.claims, g.virtualGroups, g.reasons, g.panics, profiles)
	return parts{
		handle: g.handle, panics: g.panics, statuses: g.statuses, planner: plans, claims: g.claims, replacement: g.places, belowMinimum: g.policy,
		aging:      aging.NewController(aging.EngineGangs(g.handle), plans.View(), g.claims, g.attempts, g.ranking, clock.RealClock{}),
		queueSort:  queuesort.NewSorter(g.ranking, g.runs, g.membersOf, clock.RealClock{}),
		binding:    binding.New(g.handle, g.attempts),
		preemption: preemption.New(g.handle, plans, g.claims, g.attempts, g.suspender, foreign{cache: g.cache, pods: g.pods}, g.panics, clock.RealClock{}),
		packing:    packing.NewCounters(),
		crossNode:  crossnode.New(planner.Planned, profiles),
	}
}

// extension is one plugin of ours. A profile gets an instance of its own, so
// what all of them must agree on is made once, in extensions.
type extension struct {
	name   string
	make   frameworkruntime.PluginFactory
	weight int32 // of its scores; zero for the engine's default
	// replaces is a plugin of the engine that is switched off where this one is on.
	replaces string
	// replacesAt is one that is switched off at some extension points only.
	replacesAt string
	points     func(*schedulerconfig.Plugins) []*schedulerconfig.PluginSet
	// after is a plugin of the engine that this one comes right after, at each extension point but first and last, where it comes before and after
	// all.
	after       string
	first, last func(*schedulerconfig.Plugins) *schedulerconfig.PluginSet
	// unless, if set, reports whether a configuration rules the plugin out.
	unless func(*schedulerconfig.Plugins) bool
}

// extensions are our plugins, in the order in which the engine calls them,
// after its own. Those that derive claims from the snapshot come before the one
// that enforces them.
func extensions(p parts) []extension {
	return []extension{
		{name: queuesort.Name, make: p.queueSort.NewPlugin, replaces: queuesort.Replaces, unless: queuesort.Ordered},
		{name: belowmin.Name, make: p.belowMinimum.NewPlugin, first: preFilter}, // a member has no signature: the others need not make one
		{name: binding.Name, make: p.binding.NewPlugin, replacesAt: binding.ReplacesPermit, points: permit},
		{name: replacement.Name, make: p.replacement.NewPlugin, weight: replacement.Weight},
		{name: aging.Name, make: p.aging.NewPlugin},
		{name: claims.Name, make: p.claims.NewPlugin},
		{name: preemption.Name, make: p.preemption.NewPlugin, replaces: preemption.Replaces},
		{name: packing.Name, make: p.packing.NewPlugin, weight: packing.Weight},
		{name: planner.Name, make: p.planner.NewPlugin}, // what it plans for others have let pass
		crossNode(crossnode.Spread, p.crossNode), crossNode(crossnode.Affinity, p.crossNode),
	}
}

// crossNode is the plugin for a rule about pods on other nodes.
func crossNode(rule crossnode.Rule, checks *crossnode.Checks) extension {
	return extension{
		name: rule.Name, make: checks.Check(rule).NewPlugin, replacesAt: rule.Replaces, points: crossnode.Points, unless: rule.Configured,
		after: rule.Replaces, last: preFilter, // where it reads the plan
	}
}

func preFilter(p *schedulerconfig.Plugins) *schedulerconfig.PluginSet { return &p.PreFilter }

func permit(p *schedulerconfig.Plugins) []*schedulerconfig.PluginSet {
	return []*schedulerconfig.PluginSet{&p.Permit}
}

// newEngine creates kube-scheduler's engine with our plugins in its registry and those of others, and has the planner follow it.
func newEngine(ctx context.Context, p parts, others frameworkruntime.Registry, client kubernetes.Interface, factory informers.SharedInformerFactory,
	dynFactory dynamicinformer.DynamicSharedInformerFactory, recorders profile.RecorderFactory, options ...upstream.Option,
) (*upstream.Scheduler, error) {
	registry := frameworkruntime.Registry{}
	for _, e := range extensions(p) {
		registry[e.name] = p.panics.Guarded(p.handle.Binding(e.make))
	}
	if err := registry.Merge(others); err != nil {
		return nil, fmt.Errorf("create scheduler: %w", err)
	}
	options = append(options, upstream.WithFrameworkOutOfTreeRegistry(registry))
	engine, err := upstream.New(ctx, client, factory, dynFactory, recorders, options...)
	if err != nil {
		return nil, fmt.Errorf("create scheduler: %w", err)
	}
	return p.preemption.Follow(planner.Follow(p.statuses.Follow(engine, p.planner.Retry), p.planner, p.preemption.Gone)), nil
}

// checkNames refuses a profile that names a plugin that is not there. The engine ignores such a name where it has arguments or is
// disabled: a plugin whose name is misspelled would run with its defaults.
func checkNames(profiles []schedulerconfig.KubeSchedulerProfile, plugins []extension, others frameworkruntime.Registry) error {
	known := frameworkplugins.NewInTreeRegistry()
	maps.Copy(known, others)
	ours := make([]string, 0, len(plugins))
	for _, p := range plugins {
		known[p.name] = p.make
		ours = append(ours, p.name)
	}
	slices.Sort(ours)
	for _, profile := range profiles {
		for _, name := range pluginNames(profile) {
			if _, ok := known[name]; !ok && name != "*" {
				return fmt.Errorf("profile %s: plugin %q not found (gangctl has %s)", profile.SchedulerName, name, strings.Join(ours, ", "))
			}
		}
	}
	return nil
}

// pluginNames returns the names in a profile: of plugins that have arguments, are enabled, or are disabled.
func pluginNames(profile schedulerconfig.KubeSchedulerProfile) []string {
	var names []string
	for _, config := range profile.PluginConfig {
		names = append(names, config.Name)
	}
	if profile.Plugins == nil {
		return names
	}
	points := reflect.ValueOf(*profile.Plugins) // has a field for each extension point
	for i := range points.NumField() {
		if set, ok := points.Field(i).Interface().(schedulerconfig.PluginSet); ok {
			for _, plugin := range slices.Concat(set.Enabled, set.Disabled) {
				names = append(names, plugin.Name)
			}
		}
	}
	return names
}

// enable adds our plugins to every profile. A configuration file need not name
// them; one that disables a plugin, or places it itself, is respected.
func enable(profiles []schedulerconfig.KubeSchedulerProfile, plugins []extension) {
	for i := range profiles {
		if profiles[i].Plugins == nil {
			profiles[i].Plugins = &schedulerconfig.Plugins{}
		}
		for _, p := range plugins {
			p.enable(profiles[i].Plugins)
		}
	}
}

// enable adds the plugin to those of a profile, and switches off what it replaces.
func (p extension) enable(plugins *schedulerconfig.Plugins) {
	set, ours := &plugins.MultiPoint, schedulerconfig.Plugin{Name: p.name}
	named := func(q schedulerconfig.Plugin) bool { return q.Name == p.name }
	if slices.ContainsFunc(set.Disabled, named) || p.unless != nil && p.unless(plugins) {
		return
	}
	set.Enabled = slices.DeleteFunc(set.Enabled, func(q schedulerconfig.Plugin) bool { return p.replaces != "" && q.Name == p.replaces })
	if !slices.ContainsFunc(set.Enabled, named) {
		set.Enabled = slices.Insert(set.Enabled, p.position(set.Enabled), schedulerconfig.Plugin{Name: p.name, Weight: p.weight})
	}
	if p.replacesAt != "" { // before ours is among the disabled ones: a configuration that has it there keeps theirs
		for _, at := range p.points(plugins) {
			replaceAt(at, p)
		}
	}
	if p.first != nil {
		putFirst(p.first(plugins), ours)
	}
	if p.last != nil { // the engine takes a plugin that is off for all points and on for one for the last there
		at := p.last(plugins)
		at.Disabled, at.Enabled = append(at.Disabled, ours), append(at.Enabled, ours)
	}
}

// position is where the plugin is inserted among those that are on: the end, unless it comes after another.
func (p extension) position(on []schedulerconfig.Plugin) int {
	if at := slices.IndexFunc(on, func(q schedulerconfig.Plugin) bool { return p.after != "" && q.Name == p.after }); at >= 0 {
		return at + 1
	}
	return len(on)
}

// putFirst puts a plugin before the others at an extension point, unless the configuration has it there, or not.
func putFirst(set *schedulerconfig.PluginSet, ours schedulerconfig.Plugin) {
	if !lists(set.Enabled, ours.Name) && !lists(set.Disabled, ours.Name, "*") {
		set.Enabled = slices.Insert(set.Enabled, 0, ours)
	}
}

// replaceAt switches off the plugin that one of ours replaces at one extension point, unless the configuration has it there, or ours not.
func replaceAt(set *schedulerconfig.PluginSet, p extension) {
	if !lists(set.Enabled, p.replacesAt) && !lists(set.Disabled, p.name, "*") {
		set.Disabled = append(set.Disabled, schedulerconfig.Plugin{Name: p.replacesAt})
	}
}

// lists reports whether a list has a plugin of one of these names.
func lists(plugins []schedulerconfig.Plugin, names ...string) bool {
	return slices.ContainsFunc(plugins, func(q schedulerconfig.Plugin) bool { return slices.Contains(names, q.Name) })
}
