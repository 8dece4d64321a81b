package api

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/gangcache"
	"github.com/gangctl/gangctl/scheduler/order"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

var dawn = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)

// member is a pod that got or lacks its place at a minute after dawn.
func member(name, node string, phase corev1.PodPhase, minute int) *corev1.Pod {
	at := metav1.NewTime(dawn.Add(time.Duration(minute) * time.Minute))
	status := corev1.ConditionFalse
	if node != "" {
		status = corev1.ConditionTrue
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name, CreationTimestamp: metav1.NewTime(dawn)},
		Spec:       corev1.PodSpec{SchedulerName: "gang-scheduler", NodeName: node},
		Status:     corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status, LastTransitionTime: at}}},
	}
}

// deadlines are the only limits.
type deadlines struct{}

func (deadlines) Limit(pod *corev1.Pod) (limit time.Duration, enforced, ok bool) {
	seconds := pod.Spec.ActiveDeadlineSeconds
	return time.Duration(ptr.Deref(seconds, 0)) * time.Second, true, seconds != nil
}

func ranking() *order.Ranking {
	return order.NewRanking(order.HighestResponseRatio, deadlines{}, order.NewHistory())
}

func TestStates(t *testing.T) {
	waits := func(name string, minute int) *corev1.Pod { return member(name, "", corev1.PodPending, minute) }
	runs := func(name string, minute int) *corev1.Pod { return member(name, "n1", corev1.PodRunning, minute) }
	leaves := func(name string) *corev1.Pod {
		pod := runs(name, 1)
		pod.DeletionTimestamp = &metav1.Time{Time: dawn}
		return pod
	}
	ended := func(name string, phase corev1.PodPhase) *corev1.Pod { return member(name, "n1", phase, 1) }
	busy := &reasons.Reason{Finding: answer.Finding{Code: answer.NodesBusy, Message: "no room"}, Required: 2, Fit: 1}
	for name, c := range map[string]struct {
		facts Facts
		state State
		code  answer.Code
		since int // minutes after dawn; -1 for not known
	}{
		"no object":        {Facts{Pods: []*corev1.Pod{waits("a", 3)}, Lack: gangcache.Lack{Code: answer.PodGroupMissing, Text: "PodGroup research/a not found"}}, Incomplete, answer.PodGroupMissing, 3},
		"too few pods":     {Facts{Pods: []*corev1.Pod{waits("a", 3)}, MinMember: 2, Required: 2, Lack: gangcache.Lack{Code: answer.BelowQuorum, Text: "1/2 pods exist"}}, Incomplete, answer.BelowQuorum, 3},
		"gated":            {Facts{Pods: []*corev1.Pod{waits("a", 3)}, MinMember: 1, Required: 1, Lack: gangcache.Lack{Code: answer.SchedulingGated, Text: "1/1 pods exist, 1 gated: pod a by x"}}, Incomplete, answer.SchedulingGated, 3},
		"no claim":         {Facts{Pods: []*corev1.Pod{waits("a", 3)}, MinMember: 1, Required: 1, Lack: gangcache.Lack{Code: answer.DRAUnallocatable, Text: "pod a: ResourceClaim c not found"}}, Incomplete, answer.DRAUnallocatable, 3},
		"not tried yet":    {Facts{Pods: []*corev1.Pod{waits("a", 5), waits("b", 4)}, MinMember: 2, Required: 2}, gang.Pending, "", 4},
		"no room":          {Facts{Pods: []*corev1.Pod{waits("a", 5), waits("b", 4)}, MinMember: 2, Required: 2, Reason: busy}, gang.Pending, answer.NodesBusy, 4},
		"starting":         {Facts{Pods: []*corev1.Pod{runs("a", 2), waits("b", 4)}, MinMember: 2, Required: 2}, BelowMinimum, "", 4},
		"whole":            {Facts{Pods: []*corev1.Pod{runs("a", 2), runs("b", 4)}, MinMember: 2, Required: 2}, gang.Running, "", 4},
		"one leaves":       {Facts{Pods: []*corev1.Pod{runs("a", 2), leaves("b"), waits("c", 6)}, MinMember: 2, Required: 2, Reason: busy}, BelowMinimum, answer.NodesBusy, 6},
		"needs no number":  {Facts{Pods: []*corev1.Pod{runs("a", 2), runs("b", 4)}}, gang.Running, "", 4},
		"its object went":  {Facts{Pods: []*corev1.Pod{runs("a", 2), waits("b", 4)}, Lack: gangcache.Lack{Code: answer.PodGroupMissing, Text: "PodGroup research/a not found"}}, gang.Running, answer.PodGroupMissing, 2},
		"an old reason":    {Facts{Pods: []*corev1.Pod{runs("a", 2), runs("b", 4)}, MinMember: 2, Required: 2, Reason: busy}, gang.Running, "", 4},
		"one has finished": {Facts{Pods: []*corev1.Pod{runs("a", 2), ended("b", corev1.PodSucceeded)}, MinMember: 2, Required: 1}, gang.Running, "", 2},
		"finished":         {Facts{Pods: []*corev1.Pod{ended("a", corev1.PodSucceeded), ended("b", corev1.PodSucceeded)}, MinMember: 2, Required: 1}, gang.Succeeded, "", -1},
		"failed":           {Facts{Pods: []*corev1.Pod{ended("a", corev1.PodSucceeded), ended("b", corev1.PodFailed)}, MinMember: 2, Required: 1}, gang.Failed, "", -1},
	} {
		c.facts.Ranking, c.facts.At = ranking(), dawn.Add(time.Hour)
		g := Describe(c.facts)
		if g.State != c.state || g.Code != c.code {
			t.Errorf("%s: %s %q, want %s %q", name, g.State, g.Code, c.state, c.code)
		}
		switch {
		case g.Since == nil != (c.since < 0), g.Since != nil && !g.Since.Equal(dawn.Add(time.Duration(c.since)*time.Minute)):
			t.Errorf("%s: since %v, want %d minutes after dawn", name, g.Since, c.since)
		}
	}
}

func TestDescribeShowsAll(t *testing.T) {
	next := dawn.Add(time.Hour)
	fit := int32(1)
	f := Facts{
		Key:    gang.Key{Dialect: gang.Volcano, Namespace: "research", Name: "llama"},
		Object: &Object{APIVersion: "scheduling.volcano.sh/v1beta1", Kind: "PodGroup", Name: "llama", UID: "u"},
		Pods:   []*corev1.Pod{member("llama-0", "n1", corev1.PodRunning, 1), member("llama-1", "", corev1.PodPending, 2)}, MinMember: 2, Required: 2, Priority: 7,
		Reason: &reasons.Reason{
			Finding: answer.Finding{Code: answer.ReservedByOthers, Message: "m"}, Required: 2, Fit: 1, Shortages: []reasons.Shortage{{Resource: "cpu", Requested: "2"}},
			Blockers: []reasons.Blocker{{Name: "research/bert", Text: "a gang of another namespace"}}, NextAttempt: next, Retry: "r",
		},
		Claims: []Claim{{Node: "n2", Member: "llama-9", Until: next}}, Reservation: &Reservation{Nodes: []string{"n3"}, Since: dawn, Start: &next},
		Ranking: ranking(), At: dawn.Add(92 * time.Minute),
	}
	f.Pods[1].Spec.ActiveDeadlineSeconds = ptr.To[int64](45 * 60)
	since := dawn.Add(2 * time.Minute)
	want := Gang{
		Namespace: "research", Name: "llama", Dialect: gang.Volcano, Scheduler: "gang-scheduler", Object: f.Object, MinMember: 2, Priority: 7,
		Pods: Pods{Total: 2, Bound: 1, Running: 1}, State: BelowMinimum, Since: &since, Code: answer.ReservedByOthers, Message: "m", Required: 2, Fit: &fit,
		Shortages: f.Reason.Shortages, Blockers: []string{"research/bert"}, Claims: f.Claims, Reservation: f.Reservation, NextAttempt: &next, Retry: "r",
		Order: &Order{
			Policy: order.HighestResponseRatio, Ratio: 3, ExpectedRuntime: 45 * 60, Basis: order.Deadline,
			Message: "response ratio 3.0: waited 90m, expected to run 45m by its deadline",
		},
	}
	if got := Describe(f); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
