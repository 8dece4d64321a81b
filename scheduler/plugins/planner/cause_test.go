package planner

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/utils/clock"

	"github.com/gangctl/gangctl/internal/poll"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

func TestExplain(t *testing.T) {
	changed := func(change func(*corev1.Node)) func(*rig) {
		return func(r *rig) {
			r.changedNode("n1", change, "nvidia.com/gpu", "4")
			r.changedNode("n2", change, "nvidia.com/gpu", "4")
		}
	}
	two := changed(func(*corev1.Node) {})
	use := func(r *rig, node string, amounts ...string) {
		p := pod("on-"+node, "", amounts...)
		p.Spec.NodeName = node
		r.create(p)
	}
	apart := func(p *corev1.Pod) {
		p.Labels["job"] = "g"
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": "g"}},
		}}}}
	}
	gpu := func(n string) []string { return []string{"nvidia.com/gpu", n} }
	for name, c := range map[string]struct {
		cluster func(*rig)
		members [][]string // what each requests
		change  func(*corev1.Pod)
		code    answer.Code
		message string
		fit     int32
		short   *reasons.Shortage
	}{
		"more than there is": {
			cluster: two, members: [][]string{gpu("4"), gpu("4"), gpu("4")}, fit: 2,
			code: answer.TooBig, message: "it needs 3 members with 4 GPUs each, 12 in all, and the 2 nodes that it may use have 8 GPUs in all",
			short: &reasons.Shortage{Resource: "nvidia.com/gpu", Requested: "12", Available: "8", Total: "8"},
		},
		"in use": {
			cluster: func(r *rig) { two(r); use(r, "n1", "nvidia.com/gpu", "2") }, members: [][]string{gpu("4"), gpu("4")}, fit: 1,
			code: answer.NodesBusy, message: "6 of 8 GPUs free on the 2 nodes that it may use, as 4+2, and it needs 2 members with 4 GPUs each, 8 in all",
			short: &reasons.Shortage{Resource: "nvidia.com/gpu", Requested: "8", Available: "6", Total: "8"},
		},
		"in pieces": {
			cluster: func(r *rig) {
				two(r)
				use(r, "n1", "nvidia.com/gpu", "2")
				use(r, "n2", "nvidia.com/gpu", "1")
			}, members: [][]string{gpu("4")},
			code: answer.Fragmented, message: "needs 1 member with 4 GPUs on one node; 5 GPUs are free but as 3+2",
		},
		"cpu": {
			cluster: func(r *rig) { two(r); use(r, "n1", "cpu", "60"); use(r, "n2", "cpu", "60") }, members: [][]string{{"cpu", "8"}, {"cpu", "8"}},
			code: answer.InsufficientCPU, message: "8 of 128 cpu free on the 2 nodes that it may use, as 4+4, and it needs 2 members with 8 cpu each, 16 in all",
			short: &reasons.Shortage{Resource: "cpu", Requested: "16", Available: "8", Total: "128"},
		},
		"no node may be used": {
			cluster: two, members: [][]string{gpu("1")}, change: func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} },
			code: answer.SelectorNoMatch, message: "no node may be used by 1 member with 1 GPU: 2 nodes nodeSelector zone=b",
			short: &reasons.Shortage{Resource: "nvidia.com/gpu", Requested: "1", Available: "0", Total: "0"},
		},
		"nodes are tainted": {
			cluster: changed(func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "maint", Value: "disk", Effect: corev1.TaintEffectNoSchedule}}
			}), members: [][]string{gpu("1")},
			code: answer.TooBig, message: "no node may be used by 1 member with 1 GPU: 2 nodes taint maint=disk:NoSchedule",
			short: &reasons.Shortage{Resource: "nvidia.com/gpu", Requested: "1", Available: "0", Total: "0"},
		},
		"nodes are cordoned": {
			cluster: changed(func(n *corev1.Node) { n.Spec.Unschedulable = true }), members: [][]string{gpu("1")},
			code: answer.NodeNotReady, message: "no node may be used by 1 member with 1 GPU: 2 nodes cordon",
			short: &reasons.Shortage{Resource: "nvidia.com/gpu", Requested: "1", Available: "0", Total: "0"},
		},
		"one a node": {
			cluster: two, members: [][]string{gpu("1"), gpu("1"), gpu("1")}, change: apart, fit: 2,
			code: answer.Fragmented, message: "pod anti-affinity keeps it from the room that there is: 2 of 3 members fit with it, all without",
		},
		"the role that is short is named": {
			cluster: two, members: [][]string{{"cpu", "1"}, gpu("8")}, fit: 1,
			change: func(p *corev1.Pod) {
				p.Labels["training.kubeflow.org/replica-type"] = map[bool]string{true: "worker", false: "ps"}[p.Name == "g-1"]
			},
			code: answer.TooBig, message: "it needs 1 worker with 8 GPUs, and no node that it may use has more than 4 GPUs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			c.cluster(r)
			used := len(r.places())
			poll.Until(r, "the engine knows the cluster", func() bool {
				pods, err := r.engine.Cache.PodCount()
				return err == nil && pods == used && r.engine.Cache.NodeCount() == 2
			})
			r.gang("g", int32(len(c.members)))
			for i, requests := range c.members {
				p := member("g", i, requests...)
				if c.change != nil {
					c.change(p)
				}
				r.create(p)
			}
			reason := r.parked("g")
			if reason.Finding.Message != c.message {
				t.Errorf("message %q", reason.Finding.Message)
			}
			if reason.Finding.Code != c.code || reason.Fit != c.fit || reason.Required != int32(len(c.members)) {
				t.Errorf("code %s, %d of %d fit", reason.Finding.Code, reason.Fit, reason.Required)
			}
			if got := fmt.Sprint(reason.Shortages); c.short == nil && len(reason.Shortages) > 0 || c.short != nil && got != fmt.Sprint([]reasons.Shortage{*c.short}) {
				t.Errorf("shortages %s, want %v", got, c.short)
			}
			want := fmt.Sprintf("0/2 nodes are available: %d of the %d members that its gang needs fit: %s.", c.fit, len(c.members), c.message)
			for i := range c.members {
				poll.Until(r, "every member has the same message", func() bool { return r.message(fmt.Sprintf("g-%d", i)) == want })
			}
		})
	}
}

// Rules of members, and not what they request, keep a gang from the room that there is: the message has them, and then the engine's.
func TestExplainRules(t *testing.T) {
	near := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cache"}},
		}}}}
	}
	spread := func(p *corev1.Pod) {
		p.Labels["job"] = "g"
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": "g"}},
		}}
	}
	for name, c := range map[string]struct {
		cpus             int // of the first node
		members, minimum int // how many members with 2 CPUs there are, and are needed
		change           func(*corev1.Pod)
		code             answer.Code
		message          string
	}{
		"near pods that are not there": {64, 2, 2, near, answer.TopologyFragmented, "required pod affinity keeps it from the room that there is: 0 of 2 members fit with it, all without"},
		"spread":                       {2, 5, 4, spread, answer.TopologySpread, "the spread over kubernetes.io/hostname (maxSkew 1) keeps it from the room that there is: 3 of 5 members fit with it, at least 4 without"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for i, cpus := range []int{c.cpus, 64} {
				r.node(fmt.Sprintf("n%d", i), "cpu", fmt.Sprint(cpus))
			}
			r.gang("g", int32(c.minimum))
			for i := range c.members {
				p := member("g", i, "cpu", "2")
				c.change(p)
				r.create(p)
			}
			group := types.NamespacedName{Namespace: "default", Name: "g"}
			var reason reasons.Reason
			poll.Until(r, "the reason is reported of all members", func() bool {
				reason, _ = r.reasons.Get(group)
				return strings.Contains(reason.Finding.Message, fmt.Sprintf("of %d members", c.members))
			})
			if reason.Finding.Code != c.code || !strings.HasPrefix(reason.Finding.Message, c.message+"; pod g-") || len(reason.Shortages) > 0 {
				t.Errorf("%s: %q, %v", reason.Finding.Code, reason.Finding.Message, reason.Shortages)
			}
		})
	}
}

// stallingClock stands still for a while at each look, if stall is set: as on a busy machine.
type stallingClock struct {
	clock.RealClock
	stall atomic.Int64
}

func (c *stallingClock) Now() time.Time {
	<-time.After(time.Duration(c.stall.Load()))
	return c.RealClock.Now()
}

// The machine stalls between the proof and its explanation, which has its own time: the reason is the rack, and not that free GPUs are in pieces, of
// which each is large enough. What came too late is tried again soon.
func TestAnExplanationHasItsOwnTime(t *testing.T) {
	stalling := &stallingClock{}
	r := newRig(t, withArgs(`{"searchBudget":"1s","retryPeriod":"7s"}`), func(r *rig, _ *schedulerconfig.KubeSchedulerProfile) { r.planner.clock = stalling })
	r.racked([2]string{"n1", "r1"}, [2]string{"n2", "r1"}, [2]string{"n3", "r2"}, [2]string{"n4", "r2"})
	for i, node := range []string{"n1", "n2"} {
		p := member("g", i, "nvidia.com/gpu", "2")
		p.Spec.NodeName = node
		r.create(p)
	}
	poll.Until(r, "the engine knows the members that are bound", func() bool { n, err := r.engine.Cache.PodCount(); return err == nil && n == 2 })
	r.gang("g", 3, sharing(gang.Topology{Required: "rack"}))
	stalling.stall.Store(int64(1100 * time.Millisecond))
	r.create(member("g", 2, "nvidia.com/gpu", "2"))
	reason := r.parked("g")
	stalling.stall.Store(0)
	if !strings.HasPrefix(reason.Finding.Message, "its other members are at rack=r1, where there is room for 0 of 1") {
		t.Errorf("%s: %q", reason.Finding.Code, reason.Finding.Message)
	}
	if reason.Retry != retriesWithRoom(7*time.Second) {
		t.Errorf("it is tried again %s", reason.Retry)
	}
}

// Of a resource of which the free pieces hold all members it is not claimed that they are too small: the time was too short for what else there is, or something keeps a member from every node.
func TestHalfAReason(t *testing.T) {
	on := func(free ...int64) placement.Room {
		r := placement.Room{Resource: gpus, Members: 2, PerMember: 2, Requested: 4, Role: placement.Role{Name: "member", Count: 2}}
		for _, n := range free {
			r.Nodes = append(r.Nodes, placement.NodeRoom{Free: n, Total: 4})
			r.Free, r.Usable, r.Total, r.LargestFree, r.LargestTotal = r.Free+n, r.Usable+n, r.Total+4, max(r.LargestFree, n), 4
		}
		return r
	}
	for _, c := range []struct {
		room    placement.Room
		cut     bool
		code    answer.Code
		message string
	}{
		{on(2, 2), true, answer.SearchIncomplete, "needs 2 members with 2 GPUs each, 4 in all, for which 4 GPUs are free, as 2+2, but not with all else that it requires"},
		{on(2, 2), false, answer.SearchIncomplete, "needs 2 members with 2 GPUs each, 4 in all, for which 4 GPUs are free, as 2+2, but not with all else that it requires"},
		{on(3, 1), true, answer.Fragmented, "needs 2 members with 2 GPUs each on one node, 4 in all; 4 GPUs are free but as 3+1"},
		{on(2), true, answer.NodesBusy, "2 of 4 GPUs free on the 1 node that it may use, and it needs 2 members with 2 GPUs each, 4 in all"},
	} {
		q := &query{cut: c.cut}
		if code, _, _, message := q.reason(t.Context(), placement.Result{}, c.room); code != c.code || message != c.message {
			t.Errorf("%s: %s", code, message)
		}
	}
}

// message returns the message of a pod that has no node.
func (r *rig) message(name string) string {
	r.Helper()
	p, err := r.client.CoreV1().Pods("default").Get(r.Context(), name, metav1.GetOptions{})
	r.must(err)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	return ""
}

// A gang that is beyond what is searched is not said to have had too little time.
func TestExplainAGangThatIsNotSearched(t *testing.T) {
	many := placement.Gang{}
	for i := range 65 {
		many.Roles = append(many.Roles, placement.Role{Name: fmt.Sprint("r", i), Count: 1, Pod: member("g", i, "cpu", fmt.Sprint(i+1, "m"))})
	}
	q := &query{gang: many, opts: placement.Options{Budget: time.Minute}}
	found := placement.Place(t.Context(), placement.NewCluster(placement.Objects{}), many, q.opts)
	if got, want := q.explainUnknown(found).Finding.Message, "no placement is searched for more than 64 roles; there may be one"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	many.Roles = many.Roles[:1]
	many.Roles[0].Count = 200_001
	many.Roles[0].Pod.Spec.Containers[0].Resources.Requests = nil
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Allocatable = resources("pods", "1000000")
	found = placement.Place(t.Context(), placement.NewCluster(placement.Objects{Nodes: []*corev1.Node{n}}), many, q.opts)
	if got, want := q.explainUnknown(found).Finding.Message, "no placement is searched for more than 200000 members; there may be one"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
