package replay

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	gangs "github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/order"
	"github.com/gangctl/gangctl/scheduler/plugins/aging"
	"github.com/gangctl/gangctl/scheduler/plugins/claims"
)

// start is when traces begin.
var start = time.Date(2017, 10, 1, 0, 0, 0, 0, time.UTC)

// searchBudget is the time for each search of a placement: a busy machine must not cut one short.
const searchBudget = time.Minute

// Result is what became of the jobs of a trace.
type Result struct {
	// JCT is the mean time from submission to end.
	JCT time.Duration
	// BigWait is the wait that one in a hundred of the jobs exceeds that need more than one node; 0 without any.
	BigWait time.Duration
}

// Run plays jobs on so many nodes of 8 GPUs.
func Run(ctx context.Context, jobs []Job, nodes int, policy Policy) (Result, error) {
	r, err := newReplay(ctx, nodes, policy)
	if err != nil {
		return Result{}, err
	}
	next := slices.Clone(jobs)
	slices.SortStableFunc(next, func(a, b Job) int { return int(a.Submit - b.Submit) })
	for len(next) > 0 || len(r.running) > 0 {
		at := start.Add(math.MaxInt64)
		if len(next) > 0 {
			at = start.Add(next[0].Submit)
		}
		if len(r.running) > 0 && r.running[0].end.Before(at) {
			at = r.running[0].end
		}
		r.clock.SetTime(at)
		if err := r.finish(); err != nil {
			return Result{}, err
		}
		for len(next) > 0 && !start.Add(next[0].Submit).After(at) {
			r.submit(next[0])
			next = next[1:]
		}
		if err := r.schedule(ctx); err != nil {
			return Result{}, err
		}
	}
	return r.result(), nil
}

// gang is a job in a replay.
type gang struct {
	Job
	group types.NamespacedName
	pods  []*corev1.Pod
	entry order.Entry
	// tried: the engine has found no place for it.
	tried      bool
	start, end time.Time
}

// replay is one trace under one policy.
type replay struct {
	*cluster
	policy  Policy
	clock   *clocktesting.FakeClock
	ranking *order.Ranking
	ledger  *claims.Ledger
	aging   *aging.Plugin

	waiting []*gang
	running ending
	done    []*gang
	// full are the sizes of jobs for which there is no room until something ends, whatever is kept for whom.
	full map[int]bool
}

func newReplay(ctx context.Context, nodes int, policy Policy) (*replay, error) {
	r := &replay{cluster: newCluster(nodes), policy: policy, clock: clocktesting.NewFakeClock(start), full: map[int]bool{}}
	r.ledger = claims.NewLedger(r, r, r.clock, audience.Hidden)
	r.ranking = order.NewRanking(policy.Order, r.ledger, order.NewHistory())
	reservations := aging.NewController(r, r.cluster, r.ledger, r, r.ranking, r.clock)
	args := fmt.Sprintf(`{"after":%q}`, policy.After)
	plugin, err := reservations.NewPlugin(ctx, unknown(args), profile{})
	if err != nil {
		return nil, err
	}
	r.aging, _ = plugin.(*aging.Plugin)
	return r, nil
}

// finish ends the jobs whose time has come.
func (r *replay) finish() error {
	for len(r.running) > 0 && !r.running[0].end.After(r.clock.Now()) {
		g, _ := heap.Pop(&r.running).(*gang)
		for _, pod := range g.pods {
			if err := r.remove(pod); err != nil {
				return err
			}
		}
		r.free += g.GPUs
		r.done = append(r.done, g)
		clear(r.full)
	}
	return nil
}

// submit has a job wait.
func (r *replay) submit(j Job) {
	g := &gang{Job: j, group: types.NamespacedName{Namespace: "research", Name: fmt.Sprintf("labels:job-%d", j.ID)}}
	each := min(j.GPUs, perNode)
	for i := range max(1, j.GPUs/perNode) {
		name := fmt.Sprintf("job-%d-%d", j.ID, i)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: g.group.Namespace, Name: name, UID: types.UID(name)},
			Spec: corev1.PodSpec{
				Priority: ptr.To[int32](0), SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &g.group.Name},
				Containers: []corev1.Container{{
					Name:      "main",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{gpu: *resource.NewQuantity(int64(each), resource.DecimalSI)}},
				}},
			},
		}
		if r.policy.Hint != nil {
			pod.Annotations = map[string]string{claims.RuntimeAnnotation: r.policy.Hint(j).String()}
		}
		g.pods = append(g.pods, pod)
	}
	g.entry = order.Entry{Name: g.group.String(), Since: r.clock.Now(), Expected: r.ranking.Expect(g.pods)}
	r.waiting = append(r.waiting, g)
}

// schedule tries the jobs that wait in order, as the engine does.
func (r *replay) schedule(ctx context.Context) error {
	now := r.clock.Now()
	slices.SortFunc(r.waiting, func(a, b *gang) int { return r.ranking.Compare(a.entry, b.entry, now) })
	for _, g := range slices.Clone(r.waiting) {
		// The engine calls it in each cycle.
		if _, status := r.aging.PreFilter(ctx, framework.NewCycleState(), g.pods[0], nil); !status.IsSkip() {
			return status.AsError()
		}
		placed, err := r.try(ctx, g)
		if err != nil {
			return err
		}
		if !placed && r.policy.Strict {
			return nil
		}
	}
	return nil
}

// try places a job as the planner does, if it fits alongside what is kept from it.
func (r *replay) try(ctx context.Context, g *gang) (bool, error) {
	g.tried = true
	if g.GPUs > r.free || r.full[g.GPUs] {
		return false, nil
	}
	free, err := r.Cluster(nil)
	if err != nil {
		return false, err
	}
	roles, err := r.Roles(free, g.pods, gangs.Topology{})
	if err != nil {
		return false, err
	}
	kept := free
	withheld := r.ledger.Withheld(lister{cluster: r.cluster}, g.group, g.pods[:1], nil)
	if len(withheld) > 0 {
		kept = free.With(claims.PlacedPods(withheld)...)
	}
	options := placement.Options{Pack: true, Budget: searchBudget}
	if own := r.ledger.Nodes(g.group); len(own) > 0 {
		options.Prefer = func(n *corev1.Node) int64 {
			if slices.Contains(own, n.Name) {
				return 1
			}
			return 0
		}
	}
	found := placement.Place(ctx, kept, placement.Gang{Roles: roles}, options)
	if !found.Fits() {
		r.full[g.GPUs] = len(withheld) == 0
		return false, nil
	}
	return true, r.begin(ctx, g, found)
}

// begin has a job run.
func (r *replay) begin(ctx context.Context, g *gang, found placement.Result) error {
	r.waiting = slices.DeleteFunc(r.waiting, func(w *gang) bool { return w == g })
	g.start = r.clock.Now()
	g.end = g.start.Add(g.Runtime)
	for i, a := range found.Placement {
		pod := g.pods[i]
		pod.Spec.NodeName, pod.Status.StartTime = a.Node, ptr.To(metav1.NewTime(g.start))
		r.add(pod)
		if status := r.aging.Reserve(ctx, framework.NewCycleState(), pod, a.Node); !status.IsSuccess() {
			return status.AsError()
		}
	}
	r.free -= g.GPUs
	heap.Push(&r.running, g)
	return nil
}

func (r *replay) result() Result {
	var sum time.Duration
	var big []time.Duration
	for _, g := range r.done {
		sum += g.end.Sub(start.Add(g.Submit)) / time.Duration(len(r.done))
		if g.GPUs > perNode {
			big = append(big, g.start.Sub(start.Add(g.Submit)))
		}
	}
	result := Result{JCT: sum}
	if slices.Sort(big); len(big) > 0 {
		result.BigWait = big[min(len(big)-1, len(big)*99/100)]
	}
	return result
}

// Gangs implements aging.Source.
func (r *replay) Gangs() (all []aging.Candidate) {
	for _, g := range r.waiting {
		all = append(all, aging.Candidate{Group: g.group, Waits: g.tried, Idle: !g.tried, Since: g.entry.Since, Open: g.pods})
	}
	return all
}

// Activate, Pod, Lacking, Scheduled, Released and Wake are what the ledger and the aging controller need of the engine and the planner. All that wait are tried
// at each step, so nobody is to be woken.
func (r *replay) Activate(map[string]*corev1.Pod) {}

// Pod implements claims.Engine.
func (r *replay) Pod(pod *corev1.Pod) *corev1.Pod { return pod }

// Lacking implements claims.Engine: no member is lost.
func (r *replay) Lacking(types.NamespacedName) int { return 0 }

// Scheduled implements claims.Engine.
func (r *replay) Scheduled(types.NamespacedName) []*corev1.Pod { return nil }

// Released implements claims.ParkedGangs.
func (r *replay) Released() {}

// Wake implements aging.ParkedGangs.
func (r *replay) Wake(types.NamespacedName) {}

// profile is that of which the plugin is.
type profile struct{ fwk.Handle }

// ProfileName implements fwk.Handle.
func (profile) ProfileName() string { return "" }

// ending are jobs that run, the one that ends first in front.
type ending []*gang

func (e ending) Len() int { return len(e) }
func (e ending) Less(i, j int) bool {
	return e[i].end.Before(e[j].end) || e[i].end.Equal(e[j].end) && e[i].ID < e[j].ID
}
func (e ending) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *ending) Push(x any) {
	if g, ok := x.(*gang); ok {
		*e = append(*e, g)
	}
}

// Pop implements heap.Interface.
func (e *ending) Pop() any {
	last := len(*e) - 1
	g := (*e)[last]
	*e = (*e)[:last]
	return g
}

// unknown is the arguments of a plugin as a configuration file has them.
func unknown(args string) *runtime.Unknown {
	return &runtime.Unknown{Raw: []byte(args), ContentType: runtime.ContentTypeJSON}
}
