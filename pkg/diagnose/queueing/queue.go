// Package queueing reads what queue managers hold of a gang: its queue, Kueue's Workloads and quotas, and who waits before whom.
package queueing

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// Queue is the queue of a scheduler that keeps queues as objects. A gang object that could not be created yet would
// name the queue of the job's policy.
func Queue(v *view.View, g *gang.Gang) (schema.GroupKind, string, bool) {
	d := g.Decl
	if d == nil {
		if _, probed := GroupProbe(v, g); !probed && g.Named.Dialect != gang.Volcano || !v.Snap.Serves(schema.GroupResource{Group: volcano.Group, Resource: "queues"}, "Queue") {
			return schema.GroupKind{}, "", false
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

// GroupProbe is the answer to the create of the gang's PodGroup, if it was tried.
func GroupProbe(v *view.View, g *gang.Gang) (snapshot.Probe, bool) {
	for _, p := range v.Snap.Probes {
		if p.Kind == "PodGroup" && p.Namespace == g.Meta.Namespace && (p.Name == g.Meta.Name || p.Name == g.Named.Name) {
			return p, true
		}
	}
	return snapshot.Probe{}, false
}

// ElasticQuotas are those that hold for the gang: one that its pods name, and those of scheduler-plugins in its namespace.
func ElasticQuotas(v *view.View, g *gang.Gang) []string {
	var all []string
	for _, m := range g.Members {
		if m.Pod != nil && m.Pod.Labels[koordinatorQuota] != "" {
			all = append(all, "Koordinator's ElasticQuota "+m.Pod.Labels[koordinatorQuota])
			break
		}
	}
	for _, u := range v.Snap.Custom[schema.GroupKind{Group: "scheduling.x-k8s.io", Kind: "ElasticQuota"}] {
		if u.GetNamespace() == g.Meta.Namespace {
			all = append(all, "ElasticQuota "+u.GetName())
		}
	}
	slices.Sort(all)
	return all
}

// Gated reports whether the queue has not admitted the gang, so that no pods are made.
func Gated(g *gang.Gang) bool {
	return g.Decl != nil && g.Decl.Key.Dialect == gang.Volcano && g.Decl.Phase == volcano.PhasePending
}

// koordinatorQuota is the label by which a pod of Koordinator names its quota.
const koordinatorQuota = "quota.scheduling.koordinator.sh/name"

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

// RefusedForQueue is the reason for which the create of the gang's PodGroup was refused, if that is its queue, with the answer.
func RefusedForQueue(v *view.View, g *gang.Gang) (code answer.Code, probe snapshot.Probe, refused bool) {
	probe, probed := GroupProbe(v, g)
	if _, _, queued := Queue(v, g); !probed || probe.Accepted() || g.Decl != nil || !queued {
		return "", probe, false
	}
	for _, r := range queueRefusals {
		if r.expr.MatchString(probe.Message) {
			return r.code, probe, true
		}
	}
	return "", probe, false
}
