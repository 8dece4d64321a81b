package queue

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// kueueQueue looks whether Kueue admits the job: queue, its state, its quota.
func kueueQueue(c *stage.Context, out *stage.Result) stage.State {
	workload := c.View.Workload(c.Gang.Job)
	if workload != nil && kueue.Admitted(workload) {
		if _, evicted := kueue.Eviction(workload); !evicted {
			return stage.OK("admitted by Kueue")
		}
	}
	name := queueing.LocalQueue(c.View, c.Gang, workload)
	if workload == nil && unmanaged(c) {
		out.Note("it has the label of LocalQueue %s, and Kueue does not manage it: it is not suspended, has pods and no Workload. What it uses is in no quota; Kueue may be configured without %ss", name, c.Gang.Kind.Kind)
		return stage.OK("not managed by Kueue")
	}
	if out.Denied(c, "localqueues."+kueue.Group, c.Gang.Meta.Namespace) || out.Denied(c, "clusterqueues."+kueue.Group, "") {
		return stage.Unknown("Kueue's queues may not be listed")
	}
	local := queueing.Object(c.View, "LocalQueue", c.Gang.Meta.Namespace, name)
	if local == nil {
		out.Add(noKueueQueue(c, "LocalQueue", c.Gang.Meta.Namespace, name))
		workloadState(c, out, workload)
		return stage.OK("")
	}
	f := gang.Fields{Object: local}
	clusterName := f.String("spec", "clusterQueue")
	cluster := queueing.Object(c.View, "ClusterQueue", "", clusterName)
	if cluster == nil {
		out.Add(noKueueQueue(c, "ClusterQueue", "", clusterName))
		workloadState(c, out, workload)
		return stage.OK("")
	}
	if f := kueueStopped(out, local); f != nil && (f.Facts["state"] != nil || !repeats(local)) {
		out.Add(f)
	}
	if f := kueueStopped(out, cluster); f != nil {
		out.Add(inactiveChecks(c, missingFlavors(c, f, cluster), cluster))
	}
	if f := namespaceNotSelected(c, cluster, workload); f != nil {
		out.Add(f)
	}
	workloadState(c, out, workload)
	requiredTopology(c, out)
	if workload == nil || cohort.AdmittedTo(workload) == "" {
		if f := kueueQuota(c, out, cluster, workload); f != nil {
			out.Add(f)
		}
		if workload != nil && len(out.Findings) == 0 { // what it reports is the same in other words, where something was found
			kueueReported(c, out, workload)
		}
	}
	laterChecks(out, workload)
	return stage.OK(name + " in " + clusterName)
}

// unmanaged reports whether a job that names a queue runs without Kueue having made a Workload of it.
func unmanaged(c *stage.Context) bool {
	return c.Gang.Bare == nil && !kueue.Holds(c.Gang.Job) && !c.View.Assumed && len(c.Gang.ExistingPods()) > 0 && !queueing.HeldByGate(c.Gang) &&
		c.View.Snap.CanList("workloads."+kueue.Group, c.Gang.Meta.Namespace)
}

// topologies are the annotations of pods by which Kueue keeps them in one domain. Its preferences keep no gang waiting.
var topologies = []string{"podset-required-topology", "podset-slice-required-topology"}

// requiredTopology records that Kueue admits a role only with all of it in one domain, where no stage evaluates that: of parts of a role, or where
// something else declares the gang.
func requiredTopology(c *stage.Context, out *stage.Result) {
	evaluated := view.Topology(c.Gang).AllRequired() // by the placement stage
	for _, role := range c.Gang.Roles {
		for _, name := range topologies {
			level := role.Template.Annotations[kueue.Group+"/"+name]
			known := name == "podset-required-topology" && slices.Contains(evaluated, level)
			if level != "" && !known {
				out.Unmodelled = append(out.Unmodelled, fmt.Sprintf("the %s of %s, by which Kueue admits it: %s", name, role.Name, level))
			}
		}
	}
}

func noKueueQueue(c *stage.Context, kind, namespace, name string) *stage.Finding {
	var have, elsewhere []string
	for _, u := range c.View.Snap.Custom[kueue.Kind(kind)] {
		switch {
		case u.GetNamespace() == namespace:
			have = append(have, u.GetName())
		case u.GetName() == name && c.Reader.Sees(u.GetNamespace()):
			elsewhere = append(elsewhere, u.GetNamespace())
		}
	}
	f := stage.Found(answer.QueueNotFound, "%s %q does not exist, so Kueue never looks at the job; there are: %s", kind, name, phrase.Names(have)).
		Fact("queue", name).Fact("have", have)
	if kind == "ClusterQueue" {
		f.Who = answer.Admin
		return f
	}
	if len(elsewhere) > 0 {
		f.Detail("there is a LocalQueue %s in namespace %s: a job can name one of its own namespace only", name, phrase.Names(elsewhere))
	}
	nearest := suggest.Nearest(name, have)
	if name == "" {
		f.Message = fmt.Sprintf("it names no LocalQueue, without which Kueue never admits it; there are: %s", phrase.Names(have))
		if len(have) == 1 {
			nearest = have[0]
		}
	}
	if nearest == "" {
		return f
	}
	return f.Detail("did you mean %s?", nearest).Fix(patch.Labelled(c.Gang, kueue.QueueLabel, nearest, "queue", "use LocalQueue "+nearest))
}

// kueueStopped finds that the queue was stopped, or Kueue finds it unusable.
func kueueStopped(out *stage.Result, q *unstructured.Unstructured) *stage.Finding {
	policy := kueue.StopPolicy(q)
	condition, active := gang.ConditionIn(q, "Active")
	kind, name := q.GetKind(), q.GetName()
	switch {
	case policy != "":
	case active != "False":
		return nil
	case stage.Outdated(q, "Active"):
		out.Note("outdated: that %s %s is not active (%s) was reported of an earlier spec", kind, name, condition.Message)
		return nil
	default:
		return stage.Found(answer.QueueClosed, "%s %s is not active: %s", kind, name, condition.Message).
			See(q.GetAPIVersion(), kind, q, ".status.conditions").SinceTime(condition.At).Fact("queue", name)
	}
	return stage.Found(answer.QueueClosed, "%s %s is closed (stopPolicy %s): nothing new is admitted until it is open again", kind, name, policy).
		See(q.GetAPIVersion(), kind, q, ".spec.stopPolicy").Fact("queue", name).Fact("state", policy).
		Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: fmt.Sprintf("open %s %s", kind, name), Change: map[string]any{"queue": name, "stopPolicy": "None"},
				Command: command.MergePatch(q.GetNamespace(), strings.ToLower(kind)+"."+kueue.Group, name, map[string]any{"spec": map[string]any{"stopPolicy": "None"}})},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(s, kueue.Kind(kind), q.GetNamespace(), name, func(u *unstructured.Unstructured) {
					whatif.Set(u, "None", "spec", "stopPolicy")
					whatif.DropCondition(u, "Active")
				})
			},
		})
}

// repeats reports whether a LocalQueue is not active only because its ClusterQueue is not, or was not when that was reported.
func repeats(local *unstructured.Unstructured) bool {
	condition, _ := gang.ConditionIn(local, "Active")
	return condition.Reason == "ClusterQueueIsInactive"
}

// missingFlavors adds the ResourceFlavors that a ClusterQueue names and that do not exist: Kueue finds it unusable until they do.
func missingFlavors(c *stage.Context, f *stage.Finding, queue *unstructured.Unstructured) *stage.Finding {
	if f.Facts["state"] != nil || !c.View.Snap.CanList("resourceflavors."+kueue.Group, "") {
		return f
	}
	missing := slices.DeleteFunc(queueing.FlavorNames(queue), func(name string) bool { return queueing.Object(c.View, "ResourceFlavor", "", name) != nil })
	if len(missing) == 0 {
		return f
	}
	return f.Detail("ResourceFlavor %s of its spec does not exist", phrase.And(missing)).Fact("flavors", missing).Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "create ResourceFlavor " + phrase.And(missing) + ", or take it out of ClusterQueue " + queue.GetName(), Change: map[string]any{"flavors": missing},
			Command: command.Kubectl("", "edit", "clusterqueue."+kueue.Group, queue.GetName())},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := s.Clone()
			for _, name := range missing {
				flavor := &unstructured.Unstructured{}
				flavor.SetGroupVersionKind(kueue.Kind("ResourceFlavor").WithVersion(queue.GroupVersionKind().Version))
				flavor.SetName(name)
				if err := n.Put(flavor); err != nil {
					return nil
				}
			}
			return whatif.Edit(n, queue.GroupVersionKind().GroupKind(), "", queue.GetName(), func(u *unstructured.Unstructured) { whatif.DropCondition(u, "Active") })
		},
	})
}

// namespaceNotSelected finds that the ClusterQueue takes Workloads of some namespaces only, or of none, as one does that has no selector.
func namespaceNotSelected(c *stage.Context, queue, wl *unstructured.Unstructured) *stage.Finding {
	name, selector := queue.GetName(), queueing.Selector(queue)
	see := func(f *stage.Finding) *stage.Finding {
		return f.See(queue.GetAPIVersion(), queue.GetKind(), queue, ".spec.namespaceSelector").Fact("queue", name)
	}
	if selector == nil && wl != nil {
		condition, status := gang.ConditionIn(wl, "QuotaReserved")
		if status != "False" || !strings.Contains(condition.Message, namespaceMessage) {
			return nil
		}
		return see(stage.Found(answer.QueueClosed, "ClusterQueue %s is closed to every namespace: it has no namespaceSelector", name)).Fix(stage.Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: fmt.Sprintf("have ClusterQueue %s take Workloads of all namespaces", name), Change: map[string]any{"queue": name, "namespaceSelector": map[string]any{}},
				Command: command.MergePatch("", "clusterqueue."+kueue.Group, name, map[string]any{"spec": map[string]any{"namespaceSelector": map[string]any{}}})},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(s, kueue.Kind("ClusterQueue"), "", name, func(u *unstructured.Unstructured) { whatif.Set(u, map[string]any{}, "spec", "namespaceSelector") })
			},
		})
	}
	if queueing.Takes(c.View, queue, c.Gang.Meta.Namespace) {
		return nil
	}
	text := selector.String()
	if !c.Reader.SeesAll() {
		text = "other labels" // one of which is the name
	}
	f := see(stage.Found(answer.QueueClosed, "ClusterQueue %s is closed to namespace %s: its namespaceSelector takes only those with %s", name, c.Gang.Meta.Namespace, text)).Fact("selector", text)
	if fix, ok := labelledFor(c, selector); ok {
		f.Fix(fix)
	}
	return f
}

// labelledFor labels the namespace of the gang such that a selector takes it; ok is false where that selects no plain values, or the name, which stays.
func labelledFor(c *stage.Context, selector labels.Selector) (fix stage.Fix, ok bool) {
	namespace := c.Gang.Meta.Namespace
	requirements, selectable := selector.Requirements()
	i := slices.IndexFunc(c.View.Snap.Namespaces, func(ns *corev1.Namespace) bool { return ns.Name == namespace })
	if !selectable || i < 0 || !c.Reader.SeesAll() {
		return fix, false
	}
	change, args := map[string]any{}, []string{"label", "--overwrite", "namespace", namespace}
	for _, r := range requirements {
		if r.Matches(labels.Set(c.View.Snap.Namespaces[i].Labels)) {
			continue
		}
		values := r.ValuesUnsorted()
		slices.Sort(values)
		if len(values) == 0 || r.Operator() == selection.NotIn || r.Operator() == selection.NotEquals || r.Key() == corev1.LabelMetadataName {
			return fix, false
		}
		change[r.Key()], args = values[0], append(args, r.Key()+"="+values[0])
	}
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "label namespace " + namespace + " " + phrase.And(args[4:]), Change: change, Command: command.Kubectl("", args...)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := s.Clone()
			ns := n.Namespaces[i].DeepCopy()
			if ns.Labels == nil {
				ns.Labels = map[string]string{}
			}
			for key, value := range change {
				ns.Labels[key], _ = value.(string)
			}
			n.Namespaces[i] = ns
			return n
		},
	}, true
}
