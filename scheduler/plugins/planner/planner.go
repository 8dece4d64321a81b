package planner

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/engine"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

// The values of the label result of gangctl_scheduler_plans_total.
const (
	resultPlaced     = "placed"
	resultImpossible = "impossible"
	resultEqual      = "equal"
	resultUnproven   = "unproven"
)

// planCounters are the metrics of plans.
type planCounters struct {
	results       *metrics.CounterVec
	duration      *metrics.Histogram
	disagreements *metrics.Counter
}

func newPlanCounters() planCounters {
	return planCounters{
		results: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "plans_total", StabilityLevel: metrics.ALPHA,
			Help: "Plans for whole gangs by result: placed, impossible (proven), equal (to a gang of which that was proven just before), or unproven (the gang was left to the engine).",
		}, []string{"result"}),
		duration: metrics.NewHistogram(&metrics.HistogramOpts{
			Subsystem: "gangctl_scheduler", Name: "plan_duration_seconds", StabilityLevel: metrics.ALPHA,
			Help: "Time taken to plan a whole gang.", Buckets: metrics.ExponentialBuckets(0.0001, 2, 15),
		}),
		disagreements: metrics.NewCounter(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "plan_disagreements_total", StabilityLevel: metrics.ALPHA,
			Help: "Members that the engine refused on the node that was planned for them.",
		}),
	}
}

// attemptCounters are the metrics of gangs that failed.
type attemptCounters struct {
	parked *metrics.Gauge
	woken  *metrics.CounterVec
}

func newAttemptCounters() attemptCounters {
	return attemptCounters{
		parked: metrics.NewGauge(&metrics.GaugeOpts{
			Subsystem: "gangctl_scheduler", Name: "parked_gangs", StabilityLevel: metrics.ALPHA,
			Help: "Gangs that failed and wait for something that could help them.",
		}),
		woken: metrics.NewCounterVec(&metrics.CounterOpts{
			Subsystem: "gangctl_scheduler", Name: "woken_gangs_total", StabilityLevel: metrics.ALPHA,
			Help: "Parked gangs that are tried again, by cause: cluster, gang, claim, or time.",
		}, []string{"cause"}),
	}
}

// Register makes the planner's metrics known to a registry.
func (p *Planner) Register(register func(...metrics.Registerable)) {
	register(p.plans.results, p.plans.duration, p.plans.disagreements, p.count.parked, p.count.woken)
}

// Claims is the ledger of claims on nodes; *claims.Ledger implements it. The plugin GangClaims enforces the same claims as a filter: it
// accepts a plan that respects them, and refuses a gang that has no placement alongside them.
type Claims interface {
	// Withheld returns the claims that bind all members of a gang. Members are one of each role. Claims that bind only some of
	// them are left to the filter. Gone are pods that are not to count, as if they had left their nodes already.
	Withheld(nodes fwk.NodeInfoLister, group types.NamespacedName, members []*corev1.Pod, gone map[types.UID]bool) []claims.Claim
	// Nodes returns the names of the nodes on which room is claimed for a gang: its members go there first.
	Nodes(group types.NamespacedName) []string
	// Progress is the message for a gang on how nodes are being freed for it; empty where nothing is done.
	Progress(group types.NamespacedName) string
	// Reader returns the audience of texts that are written into a namespace.
	Reader(namespace string) audience.Reader
}

// Planner is the state that the plugins of all profiles share: the index of the snapshot, and the attempts at gangs. See [Follow].
type Planner struct {
	*Attempts
	engine   *engine.Handle
	claims   Claims
	groups   *engine.VirtualGroups
	reasons  *reasons.Store
	profiles []schedulerconfig.KubeSchedulerProfile
	plans    planCounters
	guard    *engine.Guard
	volumes  *provisioner
	contents *engine.NodeContents

	// Used by the engine's scheduling goroutine only.
	index       *placement.Index
	changed     *engine.ChangedNodes // of the index
	classesOnly *placement.Objects   // for gangs that refer to no other objects
	// Those for gangs whose places depend on the labels of namespaces, that have volumes, and that have claims of devices.
	withNamespaces, withVolumes, withDevices referred
	proofs                                   sharedProofs
}

// New returns a planner for the profiles of a scheduler. Groups are those of the gangs, each deleted by a [GroupSink]; nil where the engine
// has others. Panics may be nil.
func New(handle *engine.Handle, attempts *Attempts, claims Claims, groups *engine.VirtualGroups, store *reasons.Store, panics *engine.Panics,
	profiles []schedulerconfig.KubeSchedulerProfile,
) *Planner {
	return &Planner{
		Attempts: attempts, engine: handle, claims: claims, groups: groups, reasons: store, profiles: profiles, plans: newPlanCounters(),
		guard: panics.Guard("planner"), volumes: newProvisioner(handle), index: placement.NewIndex(), changed: engine.NewChangedNodes(), contents: engine.NewNodeContents(),
		classesOnly: &placement.Objects{},
	}
}

// watched returns the engine's cache, whose changes the planner follows. Removed is called with each node that it does not have any more.
func (p *Planner) watched(cache internalcache.Cache, removed func(klog.Logger, *corev1.Node)) internalcache.Cache {
	return engine.WatchCache(cache, p.changed, p.contents, p.engine.Assumed(), removed)
}

// Run has volumes made for claims that members share, until ctx ends.
func (p *Planner) Run(ctx context.Context) { p.volumes.run(ctx) }
