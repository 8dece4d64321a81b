package order

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/unplaced"
)

// rejections match a report of kube-scheduler, and of schedulers that are made of it: for each reason, of how many nodes it is one.
var rejections = regexp.MustCompile(`^\d+/\d+ nodes are available: (.*)$`)

// counted begins the reason of some nodes in such a report.
var counted = regexp.MustCompile(`^\d+ `)

// evaluated recognises the reasons that are evaluated here, too.
var evaluated = regexp.MustCompile(`(?i)insufficient|too many pods|taint|node affinity|selector|unschedulable|topology spread|affinity rules|affinity terms|free ports|persistent ?volume|volume|pvc|claims?\b|` +
	`node name|unknown conditions|not ready|available disk|resize preemption|cannot allocate|reserv|numa|align|quota|gang|pod ?group|elastic`)

// unevaluated are the reasons, as the scheduler has them, for which its latest report rejects nodes, and which nothing here evaluates. There are none of a report from before a
// moment, or before something gave room.
func unevaluated(c *stage.Context, since time.Time) (reasons []string) {
	since = view.Later(since, roomGiven(c))
	for _, e := range c.View.PodEvents(c.Gang) { // the latest first
		p := c.View.Pod(e.Namespace, e.Name)
		if !e.Refuses() || p == nil || p.Spec.NodeName != "" {
			continue
		}
		if c.View.Age(e.Last) > reportsWithin || e.Last.Before(since) {
			return nil
		}
		return reasonsIn(e.Message)
	}
	return nil
}

// reasonsIn are the reasons of a report that are not evaluated here.
func reasonsIn(report string) (reasons []string) {
	if _, _, ours := unplaced.FromCondition(report); ours {
		return nil
	}
	m := rejections.FindStringSubmatch(report)
	if m == nil {
		return nil
	}
	first, _, _ := strings.Cut(m[1], ". ") // what follows is about preemption
	for _, part := range strings.Split(strings.TrimSuffix(first, "."), ", ") {
		switch {
		case counted.MatchString(part):
			reasons = append(reasons, part)
		case len(reasons) > 0: // a reason with a comma
			reasons[len(reasons)-1] += ", " + part
		}
	}
	return slices.DeleteFunc(reasons, evaluated.MatchString)
}

// rejected makes of the finding that a gang fits that its scheduler rejects nodes for reasons which nothing here evaluates.
func rejected(c *stage.Context, f *stage.Finding, reasons []string) {
	f.Become(answer.FitsNotPlaced)
	f.Message = fmt.Sprintf("scheduler %s rejects nodes for what is not evaluated here: %s; else there is %s", c.Gang.Scheduler, phrase.Shorten(strings.Join(reasons, ", "), reasonLimit),
		strings.TrimPrefix(f.Message, "fits now: "))
	f.Fact("rejected", reasons)
	for _, reason := range reasons {
		undeclared(c, f, reason)
	}
}

// undeclared adds which of the nodes that have room declare no feature that a reason names: their kubelets have it not, or not enabled.
func undeclared(c *stage.Context, f *stage.Finding, reason string) {
	_, named, ok := strings.Cut(reason, "requirements: ")
	if !ok || !strings.Contains(reason, "features") {
		return
	}
	nodes := map[string]bool{}
	for _, a := range c.Placement.Placement {
		nodes[a.Node] = true
	}
	for _, feature := range strings.FieldsFunc(named, func(r rune) bool { return r == ',' || r == ' ' }) {
		var lack []string
		for _, name := range slices.Sorted(maps.Keys(nodes)) {
			if n := c.View.Cluster().Node(name); n != nil && !slices.Contains(n.Status.DeclaredFeatures, feature) {
				lack = append(lack, fmt.Sprintf("%s (kubelet %s)", name, n.Status.NodeInfo.KubeletVersion))
			}
		}
		if len(lack) > 0 && len(f.Details) < stage.MaxLines {
			f.Detail("%s %s not declare %s (status.declaredFeatures of nodes): newer kubelets may, or the pods do without what needs it", phrase.Names(lack), phrase.Verb(len(lack), "does", "do"), feature).
				Fact("nodes", slices.Sorted(maps.Keys(nodes)))
		}
	}
}
