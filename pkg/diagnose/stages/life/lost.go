package life

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/placement"
)

// lostMember is a member that was there once.
type lostMember struct {
	gang.Member
	// node is where it was, if that is known; since when it is gone; how it went.
	node  string
	since time.Time
	how   string
}

// seen reports whether something shows that it was there: its pod, or the node, the time or the way of which something is known.
func (l lostMember) seen() bool { return l.Pod != nil || l.node != "" || !l.since.IsZero() }

// lostMembers are those without a node that had one, as their siblings have: they were made, or lost their node, after the
// first of the others had started.
func lostMembers(c *stage.Context) []lostMember {
	started, awaits, never := firstStart(c), c.Gang.Awaits(), neverMade(c)
	var all []lostMember
	for _, m := range c.Gang.Members {
		l := lostMember{Member: m}
		switch {
		case m.State == gang.Lost:
			l.node, l.how = m.Pod.Spec.NodeName, "its node is not ready"
		case m.State == gang.Terminating:
			l.node, l.since, l.how = m.Pod.Spec.NodeName, view.DeletionRequested(m.Pod), c.Deletion(m.Pod)
			if failed := failure(m.Pod); failed != "" && m.Pod.Status.Phase == corev1.PodFailed {
				l.how = failed + "; " + l.how
			}
		case m.State == gang.Failed && stage.NodeRefusal(m.Pod) != "":
			continue // it never ran
		case m.State == gang.Failed:
			l.node, l.since, l.how = m.Pod.Spec.NodeName, c.View.EndedAt(m.Pod), failure(m.Pod)
		case started.IsZero() || m.State == gang.NotDue:
			continue
		case awaits(m):
			continue // it is made when another one is so far
		case m.Pod == nil:
			if remember(c, &l); never && l.node == "" && l.how == "" {
				continue
			}
		case (m.State == gang.Pending || m.State == gang.Gated) && m.Pod.CreationTimestamp.After(started.Add(stage.CreationGrace)):
			l.since = m.Pod.CreationTimestamp.Time
			remember(c, &l)
		default:
			continue
		}
		if r := c.Gang.RoleByName(m.Role); l.node == "" && l.how == "" && r != nil && r.Follows.Role != "" {
			continue // it is made after the others, and nothing shows that it was before
		}
		if m.Pod == nil {
			l.how = cmp.Or(l.how, "no pod replaces it")
		}
		if m.Pod == nil && refused(c) {
			l.how += "; its creation is refused"
		}
		whereWas(c, &l, started)
		all = append(all, l)
	}
	return all
}

// neverMade reports whether members that have no pod, and of which nothing shows that they had one, were never made: their creation is refused, or is still due.
func neverMade(c *stage.Context) bool {
	return c.Gang.Count(gang.Missing) > 0 && (refused(c) || c.View.Age(firstStart(c)) <= stage.CreationGrace)
}

// refused reports whether the creation of members is refused now, as earlier stages have found.
func refused(c *stage.Context) bool {
	return c.NoPods && (c.Has(answer.OperatorRBAC, answer.NamespaceGone) ||
		slices.ContainsFunc(c.Findings, func(f stage.Finding) bool { return f.Stage == answer.StagePods && !f.Helper }))
}

// firstStart is when the first of the members that run did start; zero if none runs.
func firstStart(c *stage.Context) time.Time {
	var first time.Time
	for _, m := range c.Gang.Members {
		if at := m.Pod; m.State == gang.Running && at.Status.StartTime != nil && (first.IsZero() || at.Status.StartTime.Time.Before(first)) {
			first = at.Status.StartTime.Time
		}
	}
	return first
}

// departures are the reasons of events that report how a pod went.
var departures = []string{"Preempted", "Preempting", "Evicted", "Evict", "TaintManagerEviction", "NodeNotReady", "NodeShutdown", "DeletingPod", "ExitedWithCode"}

// boundTo is how a scheduler reports which node a pod got.
var boundTo = regexp.MustCompile(`assigned \S+ to (\S+)`)

// remember takes from the events of the pod that a member had before, which was of the same name, where it was and how it went.
func remember(c *stage.Context, l *lostMember) {
	name := c.Gang.PodName(l.Member)
	if l.Pod != nil {
		name = l.Pod.Name
	}
	rememberPod(c, l)
	for _, e := range c.View.EventsOfMember(c.Gang.Job, name) {
		if l.Pod != nil && !e.Last.Before(l.Pod.CreationTimestamp.Time) {
			continue // about the one that is there now
		}
		if m := boundTo.FindStringSubmatch(e.Message); m != nil && l.node == "" && e.Reason == "Scheduled" {
			l.node = m[1]
		}
		if slices.Contains(departures, e.Reason) && (l.how == "" || l.Pod == nil && l.since.IsZero()) {
			l.how, l.since = strings.ToLower(e.Reason)+": "+e.Message, e.Last
		}
	}
}

// rememberPod takes that from the latest pod that the member had before and that has failed, where pods have other names each time, and the earlier ones stay.
func rememberPod(c *stage.Context, l *lostMember) {
	if c.Gang.Reader.RoleIndexOf == nil || c.Gang.Reader.PodName != nil {
		return
	}
	for _, p := range failedPods(c)[gang.RoleIndex{Role: strings.ToLower(l.Role), Index: l.Index}] {
		if end := c.View.EndedAt(p); p != l.Pod && stage.NodeRefusal(p) == "" && (l.node == "" || end.After(l.since)) {
			l.node, l.since, l.how = p.Spec.NodeName, end, failure(p)
		}
	}
}

// failedPods are the pods of the gang's job that have failed, by the member that each was, with its role in lower case.
func failedPods(c *stage.Context) map[gang.RoleIndex][]*corev1.Pod {
	type failedOf struct{ job *gang.Job }
	return view.Once(c.View, failedOf{c.Gang.Job}, func() map[gang.RoleIndex][]*corev1.Pod {
		failed := map[gang.RoleIndex][]*corev1.Pod{}
		for _, p := range c.View.PodsOf(c.Gang.Job) {
			if at, ok := c.Gang.Reader.RoleIndexOf(c.Gang.Job, p); ok && p.Status.Phase == corev1.PodFailed {
				at.Role = strings.ToLower(at.Role)
				failed[at] = append(failed[at], p)
			}
		}
		return failed
	})
}

// failure is how a pod failed, by its status.
func failure(p *corev1.Pod) string {
	return strings.Trim(p.Status.Reason+": "+p.Status.Message, ": ")
}

// whereWas guesses the node of a member that was replaced: one that went away while the gang ran and where no sibling is.
func whereWas(c *stage.Context, l *lostMember, started time.Time) {
	taken := map[string]bool{}
	for _, m := range c.Gang.Members {
		if m.Bound() && m.Name() != l.Name() {
			taken[m.Pod.Spec.NodeName] = true
		}
	}
	nodes := c.Cluster().Nodes()
	if n := c.Cluster().Node(l.node); n != nil {
		nodes = []*corev1.Node{n}
	}
	for _, n := range nodes {
		if l.node != "" && n.Name != l.node || l.node == "" && (placement.NodeReady(n) || taken[n.Name]) || !l.since.IsZero() && n.CreationTimestamp.After(l.since) {
			continue
		}
		if down := placement.NotReadyCondition(n); down != nil && !down.LastTransitionTime.Time.Before(started) {
			if l.State != gang.Failed || l.how == "" { // else its status has how it ended, and when
				l.node, l.since = n.Name, down.LastTransitionTime.Time
				l.how = fmt.Sprintf("node %s is not ready", n.Name)
			}
			return
		}
	}
	if l.node != "" && c.Cluster().Node(l.node) == nil {
		if l.State == gang.Lost {
			l.how = "" // that it is not ready
		}
		l.how = strings.TrimPrefix(l.how+"; its node "+l.node+" is gone", "; ")
		if l.State == gang.Lost {
			l.how += ", and kube-controller-manager removes its pod by itself"
		}
	}
}

// least is how many members the gang needs, where it does not need all.
func least(g *gang.Gang) string {
	if g.Min == g.Total() {
		return ""
	}
	return fmt.Sprintf(", and it needs %d", g.Min)
}

// history remarks how members of a gang that holds nothing were lost before: it waits for the second time.
func history(c *stage.Context, out *stage.Result) {
	var names []string
	var last lostMember
	for _, m := range c.Gang.Members {
		l := lostMember{Member: m}
		switch {
		case m.Pod == nil, m.State == gang.Terminating && c.Has(answer.VictimsTerminating): // of which that is reported
			continue
		case m.State == gang.Terminating:
			l.since, l.how = view.DeletionRequested(m.Pod), c.Deletion(m.Pod)
		default:
			remember(c, &l)
		}
		if l.how != "" {
			names, last = append(names, m.Name()), l
		}
	}
	if of := ofGroup(c); len(names) == 0 && of.n > 0 {
		out.Note("it ran before: it was evicted %s ago: %s", phrase.Age(c.View.Age(of.last)), of.how)
	}
	if len(names) == 0 {
		return
	}
	when := ""
	if !last.since.IsZero() {
		when = fmt.Sprintf(", %s ago", phrase.Age(c.View.Age(last.since)))
	}
	out.Note("it ran before: %s %s lost%s: %s", phrase.Names(names), phrase.Verb(len(names), "was", "were"), when, last.how)
}
