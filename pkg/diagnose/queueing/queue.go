// Package queueing reads what queue managers hold of a gang: its queue, Kueue's Workloads and quotas, and who waits before whom.
package queueing

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/dialect/yunikorn"
)

// Queue is the queue of a scheduler that keeps queues as objects. A gang object that could not be created yet would
// name the queue of the job's policy.
func Queue(v *view.View, g *gang.Gang) (schema.GroupKind, string, bool) {
	d := g.Decl
	if d == nil {
		if !v.Snap.Serves(schema.GroupResource{Group: volcano.Group, Resource: "queues"}, "Queue") && len(v.Snap.Custom[volcano.QueueKind()]) == 0 {
			return schema.GroupKind{}, "", false
		}
		if g.Named.Dialect != gang.Volcano {
			_, probed := GroupProbe(v, g)
			if _, reported := reportedRefusal(v, g); !probed && !reported && !groupedFirst(v, g) {
				return schema.GroupKind{}, "", false
			}
		}
		name := g.Queue
		if name == "" {
			name = volcano.DefaultQueue
		}
		return volcano.QueueKind(), name, true
	}
	switch d.Key.Dialect {
	case gang.Volcano:
		return volcano.QueueKind(), d.Queue, true
	case gang.KubeBatch:
		for _, group := range kubebatch.Groups() {
			if kind := (schema.GroupKind{Group: group, Kind: "Queue"}); len(v.Snap.Custom[kind]) > 0 {
				return kind, d.Queue, true
			}
		}
	case gang.KAI:
		return kai.QueueKind(), d.Queue, d.Queue != ""
	default: // the others keep no queues as objects, or none that admit
	}
	return schema.GroupKind{}, "", false
}

// groupedFirst reports whether the operator of a job makes a PodGroup for Volcano by the policy of the job, and has no pods of it before it has that.
func groupedFirst(v *view.View, g *gang.Gang) bool {
	return g.Named.Name == "" && (g.Queue != "" || len(g.Reader.Policy) > 0) && len(g.ExistingPods()) == 0 && component.OperatorScheduler(v, g) == volcano.SchedulerName
}

// HoldsUngrouped reports whether the queue of a gang is seen, takes none, and so keeps an operator from making its PodGroup.
func HoldsUngrouped(v *view.View, g *gang.Gang) bool {
	kind, _, ok := Queue(v, g)
	return ok && g.Decl == nil && len(v.Snap.Custom[kind]) > 0 && !IsOpen(v, g)
}

// GroupProbe is the answer to the create of the gang's PodGroup, if it was tried.
func GroupProbe(v *view.View, g *gang.Gang) (snapshot.Probe, bool) {
	for _, p := range v.Snap.Probes {
		if p.Kind == "PodGroup" && p.Namespace == g.Meta.Namespace && (p.Name == g.Meta.Name || p.Name == g.Named.Name) {
			return p, true
		}
	}
	return snapshot.Probe{}, false
}

// SchedulerQuotas are the quotas of the scheduler's own that hold for the gang, in a sentence: that of YuniKorn's queue, the one of Koordinator that its pods name, or those of
// scheduler-plugins in its namespace.
func SchedulerQuotas(v *view.View, g *gang.Gang) []string {
	if g.Scheduler == yunikorn.SchedulerName {
		return []string{strings.TrimSpace("YuniKorn's queue " + YuniKornQueue(g))}
	}
	if name := KoordinatorQuota(g); name != "" {
		return []string{"Koordinator's ElasticQuota " + name}
	}
	var all []string
	for _, u := range Elastic(v) {
		if u.GetNamespace() == g.Meta.Namespace {
			all = append(all, "ElasticQuota "+u.GetName())
		}
	}
	slices.Sort(all)
	return all
}

// YuniKornQueue is the queue of YuniKorn that a pod of the gang names; empty if none does.
func YuniKornQueue(g *gang.Gang) string {
	return named(g, func(p *corev1.Pod) string { return yunikorn.QueueOf(p) })
}

// KoordinatorQuota is the quota of Koordinator that a pod of the gang names; empty if none does.
func KoordinatorQuota(g *gang.Gang) string { return named(g, KoordinatorQuotaOf) }

// KoordinatorQuotaOf is the quota of Koordinator that a pod names; empty if it names none.
func KoordinatorQuotaOf(p *corev1.Pod) string { return p.Labels[koordinatorQuota] }

func named(g *gang.Gang, by func(*corev1.Pod) string) string {
	for _, p := range g.Pods() {
		if name := by(p); name != "" {
			return name
		}
	}
	return ""
}

// KoordinatorObject is the ElasticQuota of Koordinator of a name, whatever namespace it is in; nil if it is not seen.
func KoordinatorObject(v *view.View, name string) *unstructured.Unstructured {
	type byName struct{}
	return view.Once(v, byName{}, func() map[string]*unstructured.Unstructured {
		all := map[string]*unstructured.Unstructured{}
		for _, kind := range schedulerplugins.QuotaKinds() {
			for _, u := range v.Snap.Custom[kind] {
				if u.GetLabels()[koordinatorParent] != "" && all[u.GetName()] == nil {
					all[u.GetName()] = u
				}
			}
		}
		return all
	})[name]
}

// KoordinatorRuntime is what a quota of Koordinator may use for now, by what all quotas request; none where that is not written on it.
func KoordinatorRuntime(quota *unstructured.Unstructured) corev1.ResourceList {
	var runtime corev1.ResourceList
	if err := json.Unmarshal([]byte(quota.GetAnnotations()[koordinatorRuntime]), &runtime); err != nil {
		return nil
	}
	return runtime
}

// Elastic are the ElasticQuotas of scheduler-plugins, each for all pods of its namespace.
func Elastic(v *view.View) (all []*unstructured.Unstructured) {
	for _, kind := range schedulerplugins.QuotaKinds() {
		for _, u := range v.Snap.Custom[kind] {
			if u.GetLabels()[koordinatorParent] == "" {
				all = append(all, u)
			}
		}
	}
	return all
}

// Gated reports whether the queue has not admitted the gang, so that no pods are made.
func Gated(g *gang.Gang) bool {
	return g.Decl != nil && g.Decl.Key.Dialect == gang.Volcano && g.Decl.Phase == volcano.PhasePending
}

// koordinatorQuota is the label by which a pod of Koordinator names its quota.
const koordinatorQuota = "quota.scheduling.koordinator.sh/name"

// ForgetRuntime takes from a quota what Koordinator wrote before it was changed.
func ForgetRuntime(quota *unstructured.Unstructured) {
	notes := quota.GetAnnotations()
	delete(notes, koordinatorRuntime)
	quota.SetAnnotations(notes)
}

// koordinatorRuntime is the annotation in which Koordinator writes what a quota may use for now.
const koordinatorRuntime = "quota.scheduling.koordinator.sh/runtime"

// koordinatorParent is the label that Koordinator gives every quota of its own.
const koordinatorParent = "quota.scheduling.koordinator.sh/parent"

// queueRefusals recognise why a PodGroup is refused for the sake of its queue, by the messages of Volcano's webhook; others may write it in other words. Names
// of queues have no spaces. What is about a NamespaceQueue is about no queue that is read.
var queueRefusals = []struct {
	code answer.Code
	expr *regexp.Regexp
}{
	{answer.QueueNotFound, regexp.MustCompile(`(?i)\bqueues?(?:\.[a-z0-9.-]+)? \S+ (?:is |was )?(?:not found|(?:does )?not exist)`)},
	{answer.QueueClosed, regexp.MustCompile(`(?i)\bto queue with state|\bqueues? \S+ (?:is |status is )?\W?clos(?:ed|ing)\b`)},
	{answer.QueueNotLeaf, regexp.MustCompile(`(?i)\bto (?:leaf|root) queue\b`)},
}

// Refusal is that the API server, or a scheduler, does not take a gang for the sake of its queue.
type Refusal struct {
	// Code is what it has against the queue, and Message what it reports of that.
	Code    answer.Code
	Message string
	// Tried reports that the create of the gang's PodGroup was tried just now, and Status is its HTTP status; otherwise it was reported, last at a time, by an event or a condition.
	Tried       bool
	Status      int
	First, Last time.Time
	// Still reports that a condition has it, since First.
	Still bool
}

// RefusedForQueue is why the gang is refused for the sake of its queue: by the create of its PodGroup, if that was tried, or else by what was reported.
func RefusedForQueue(v *view.View, g *gang.Gang) (Refusal, bool) {
	probe, probed := GroupProbe(v, g)
	if _, _, queued := Queue(v, g); !queued || probed && (probe.Accepted() || g.Decl != nil) {
		return Refusal{}, false
	}
	if !probed {
		return reportedRefusal(v, g)
	}
	code, ok := forQueue(probe.Message)
	return Refusal{Code: code, Message: probe.Message, Tried: true, Status: probe.Code, First: v.Now, Last: v.Now}, ok
}

// IsOpen reports whether the queue of a gang is seen, is open, and has no others below it: then what was reported of it before has changed.
func IsOpen(v *view.View, g *gang.Gang) bool {
	kind, name, _ := Queue(v, g)
	open := false
	for _, u := range v.Snap.Custom[kind] {
		f := gang.Fields{Object: u}
		if name != volcano.RootQueue && Parent(u) == name {
			return false
		}
		if status := f.String("status", "state"); u.GetName() == name {
			open = status == "" || status == "Open"
		}
	}
	return open
}

// MaxDepth is how deep queues nest at most; users may write circles.
const MaxDepth = 8

// Parent is the queue that a queue names as the one above it, of Volcano's and of KAI's; empty for none.
func Parent(queue *unstructured.Unstructured) string {
	f := gang.Fields{Object: queue}
	return cmp.Or(f.String("spec", "parent"), f.String("spec", "parentQueue"))
}

// forQueue recognises a message that is about a queue.
func forQueue(message string) (answer.Code, bool) {
	for _, r := range queueRefusals {
		if r.expr.MatchString(message) {
			return r.code, true
		}
	}
	return "", false
}

// reportedWithin is for how long a report about a queue counts: whoever is refused tries again by then.
const reportedWithin = 20 * time.Minute

// reportedRefusal is what [latestReport] finds, which is found once for a gang of a view.
func reportedRefusal(v *view.View, g *gang.Gang) (Refusal, bool) {
	type reportedTo struct{ *gang.Gang }
	latest := view.Once(v, reportedTo{g}, func() *Refusal {
		if r, found := latestReport(v, g); found {
			return &r
		}
		return &Refusal{}
	})
	return *latest, latest.Code != ""
}

// latestReport is the latest report that is about the queue of a gang: by events about what makes its pods, as long as there is no PodGroup, and else by those about the PodGroup
// and the pods, and by the conditions of the PodGroup. What is assumed may have changed it.
func latestReport(v *view.View, g *gang.Gang) (latest Refusal, found bool) {
	if v.Assumed {
		return latest, false
	}
	add := func(message string, first, last time.Time) {
		if code, ok := forQueue(message); ok && v.Age(last) <= reportedWithin && !last.Before(g.Meta.CreationTimestamp.Time) && !last.Before(latest.Last) {
			latest, found = Refusal{Code: code, Message: message, First: first, Last: last}, true
		}
	}
	d, events := g.Decl, []view.Event(nil)
	if d == nil {
		events = v.MakerEvents(g.Job)
	} else {
		events = slices.Concat(v.GroupEvents(d), v.PodEvents(g))
		for _, c := range conditionsOf(v.Object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name)) {
			if add(c.Message, c.At, v.Now); latest.Message == c.Message {
				latest.Still = true
			}
		}
	}
	for _, e := range events {
		if e.Warning {
			add(e.Message, e.First, e.Last)
		}
	}
	return latest, found
}

// conditionsOf are the conditions of a group object that are true.
func conditionsOf(u *unstructured.Unstructured) (all []gang.Condition) {
	if u == nil {
		return nil
	}
	f := gang.Fields{Object: u}
	for _, c := range f.List("status", "conditions") {
		if c["status"] == "True" {
			all = append(all, gang.ConditionOf(c))
		}
	}
	return all
}
