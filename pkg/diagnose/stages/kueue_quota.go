package stages

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// quotaTree is what Kueue's queues have and use.
func (c *climb) quotaTree() *cohort.Tree {
	objects := c.w.Snap.Custom
	return cohort.New(cohort.Objects{Queues: objects[kueue.Kind("ClusterQueue")], Cohorts: objects[kueue.Kind("Cohort")],
		Workloads: objects[kueue.Kind("Workload")], Flavors: objects[kueue.Kind("ResourceFlavor")]})
}

// asks are what the roles of a gang ask of their queue.
func asks(g *gang.Gang) []cohort.Ask {
	var all []cohort.Ask
	for _, role := range g.Roles {
		need := whatif.Needs([]gang.Role{role}, role.Replicas)
		need[corev1.ResourcePods] = *resource.NewQuantity(int64(role.Replicas), resource.DecimalSI)
		all = append(all, cohort.Ask{Role: role.Name, Pod: role.Template.Spec, Need: need})
	}
	return all
}

// kueueQuota assigns each role a flavor with enough left, as Kueue does, and reports the first role without one. Pods get
// the labels of their flavors' nodes, so the placement must too.
func (c *climb) kueueQuota(queue, wl *unstructured.Unstructured) *Finding {
	tree := c.quotaTree()
	if _, short := tree.Empty(queue.GetName()).Assign(asks(c.g)...); short != nil {
		return c.kueueNever(queue, *short)
	}
	flavors, short := tree.Room(queue.GetName()).Assign(asks(c.g)...)
	if short != nil {
		return c.kueueShort(tree, queue, wl, *short)
	}
	for role, names := range flavors {
		for _, name := range names {
			c.narrow(role, tree.Labels(name))
		}
	}
	return nil
}

// narrow lets the members of a role ask for more labels of their nodes.
func (c *climb) narrow(role string, labels map[string]string) {
	for i := range c.Party.Roles {
		r := &c.Party.Roles[i]
		if len(labels) == 0 || phrase.Role(r.Name) != role {
			continue
		}
		r.Pod = r.Pod.DeepCopy()
		if r.Pod.Spec.NodeSelector == nil {
			r.Pod.Spec.NodeSelector = map[string]string{}
		}
		maps.Copy(r.Pod.Spec.NodeSelector, labels)
	}
}

// kueueNever: the gang is more than the queue can ever give.
func (c *climb) kueueNever(queue *unstructured.Unstructured, s cohort.Shortage) *Finding {
	name := queue.GetName()
	f := found(answer.StageQueue, answer.QueueTooSmall, answer.Blocked, answer.User, "Kueue can never admit it: ClusterQueue %s allows %s in all (flavor %s), and the gang needs %s",
		name, phrase.Amount(s.Name, s.Most), s.Flavor, phrase.Quantity(s.Name, s.Want)).never().fact("queue", name).fact("role", s.Role).
		see(queue.GetAPIVersion(), queue.GetKind(), queue, ".spec.resourceGroups")
	switch {
	case s.Uncovered:
		f.Message = fmt.Sprintf("Kueue can never admit it: ClusterQueue %s has no quota for %s at all, and %s asks for %s", name, s.Name, s.Role, phrase.Amount(s.Name, s.Want))
		return f.fact("resource", string(s.Name)).fact("requested", s.Want).fact("limit", int64(0))
	case s.Unsuited:
		f.Message = fmt.Sprintf("Kueue can never admit it: %s may use none of the flavors of ClusterQueue %s (%s): its nodeSelector, affinity or tolerations do not match them", s.Role, name, s.Flavor)
		for _, flavor := range strings.Split(s.Flavor, ", ") {
			if u := c.custom("ResourceFlavor", "", flavor); u != nil {
				f.see(u.GetAPIVersion(), u.GetKind(), u, ".spec")
			}
		}
		return f
	}
	return quotaFacts(f, s).fix(raiseNominal(queue, s, s.Nominal+s.Want-s.Most))
}

// kueueShort: others use what the gang needs.
func (c *climb) kueueShort(tree *cohort.Tree, queue, wl *unstructured.Unstructured, s cohort.Shortage) *Finding {
	text := func(n int64) string { return phrase.Quantity(s.Name, n) }
	name := queue.GetName()
	f := found(answer.StageQueue, answer.KueueQuota, answer.Waiting, answer.Nobody, "Kueue holds it: ClusterQueue %s has %s of %s left (flavor %s), and the gang needs %s, %s more",
		name, text(max(0, s.Left)), phrase.Amount(s.Name, s.Most), s.Flavor, text(s.Want), text(s.Want-s.Left)).
		see(queue.GetAPIVersion(), queue.GetKind(), queue, ".spec.resourceGroups").fact("queue", name)
	quotaFacts(f, s)
	lenders := tree.Lenders(name)
	for _, u := range c.w.Snap.Custom[kueue.Kind("Workload")] {
		if at := cohort.AdmittedTo(u); slices.Contains(lenders, at) {
			if n := cohort.Uses(u, s.Flavor, s.Name); n > 0 {
				f.detail("%s uses %s%s", c.jobOfWorkload(u), text(n), elsewhere(at, name))
			}
		}
	}
	if wl != nil {
		c.position(f, wl, name)
		if word, status := condition(wl, "QuotaReserved"); status == "False" {
			f.since(word.At).detail("Kueue said %s ago: %s", phrase.Age(c.w.Age(word.At)), word.Message)
		}
	}
	return f.fix(raiseNominal(queue, s, s.Nominal+s.Want-s.Left))
}

func elsewhere(queue, own string) string {
	if queue == own {
		return ""
	}
	return " in ClusterQueue " + queue
}

func quotaFacts(f *Finding, s cohort.Shortage) *Finding {
	text := func(n int64) string { return phrase.Quantity(s.Name, n) }
	f.detail("requested %s, used %s, limit %s (%s)", text(s.Want), text(s.Used), text(s.Most), s.Name)
	if s.Most != s.Nominal {
		f.detail("of the limit %s are the queue's own quota, the rest its cohort lends", text(s.Nominal))
	}
	return f.fact("flavor", s.Flavor).fact("resource", string(s.Name)).fact("requested", s.Want).fact("used", s.Used).fact("limit", s.Most)
}

// position says how many wait before the job in its ClusterQueue.
func (c *climb) position(f *Finding, wl *unstructured.Unstructured, queue string) {
	all, mine := c.waitingIn(queue, wl)
	if len(all) > 0 {
		ahead := len(before(all, mine))
		f.detail("position %d of %d that wait in ClusterQueue %s", ahead+1, len(all)+1, queue).fact("position", ahead+1)
	}
}

// raiseNominal is the least quota of the queue's own that is enough.
func raiseNominal(queue *unstructured.Unstructured, s cohort.Shortage, limit int64) Fix {
	name, text := queue.GetName(), phrase.Quantity(s.Name, limit)
	return Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise nominalQuota of %s in flavor %s of ClusterQueue %s to %s", s.Name, s.Flavor, name, text),
			Change:  map[string]any{"limit": text, "object": "ClusterQueue/" + name, "resource": string(s.Name)},
			Command: command.JSONPatch("", "clusterqueue."+kueue.Group, name, command.Patch{Op: "replace", Path: jsonPath(s.Path), Value: text})},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(snap, kueue.Kind("ClusterQueue"), "", name, func(u *unstructured.Unstructured) { setNominal(u, s.Path, text) })
		},
	}
}

// setNominal writes a quota at a path through objects and lists.
func setNominal(u *unstructured.Unstructured, path []any, text string) {
	var at any = u.Object
	for i, step := range path {
		switch key := step.(type) {
		case string:
			object, _ := at.(map[string]any)
			if i == len(path)-1 {
				object[key] = text
				return
			}
			at = object[key]
		case int:
			list, _ := at.([]any)
			at = list[key]
		}
	}
}

func jsonPath(path []any) string {
	p := ""
	for _, part := range path {
		p += "/" + command.Escape(fmt.Sprint(part))
	}
	return p
}
