package queue

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// hasKueueGate reports whether Kueue holds pods of the gang by a scheduling gate.
func hasKueueGate(c *stage.Context) bool {
	for _, m := range c.Gang.Members {
		if m.State == gang.Gated && slices.ContainsFunc(m.Pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == kueue.Gate }) {
			return true
		}
	}
	return false
}

// kueueQueue looks whether Kueue admits the job: queue, its state, its quota.
func kueueQueue(c *stage.Context, out *stage.Result) stage.State {
	workload := queueing.Workload(c.View, c.Gang)
	if workload != nil && queueing.Admitted(workload) {
		return stage.OK("admitted by Kueue")
	}
	name := queueing.LocalQueue(c.View, c.Gang, workload)
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
		out.Add(missingFlavors(c, f, cluster))
	}
	if f := namespaceNotSelected(c, cluster); f != nil {
		out.Add(f)
	}
	workloadState(c, out, workload)
	requiredTopology(c, out)
	if workload == nil || cohort.AdmittedTo(workload) == "" {
		before := len(out.Findings)
		if f := kueueQuota(c, out, cluster, workload); f != nil {
			out.Add(f)
		}
		if workload != nil && len(out.Findings) == before {
			kueueReported(c, out, workload)
		}
	}
	laterChecks(out, workload)
	return stage.OK(name + " in " + clusterName)
}

// topologies are the annotations of pods by which Kueue keeps them in one domain. Its preferences keep no gang waiting.
var topologies = []string{"podset-required-topology", "podset-slice-required-topology"}

// requiredTopology records that Kueue admits a role only with all of it in one domain, where no stage evaluates that: of one of several roles, or
// of parts of a role.
func requiredTopology(c *stage.Context, out *stage.Result) {
	for _, role := range c.Gang.Roles {
		for _, name := range topologies {
			level := role.Template.Annotations[kueue.Group+"/"+name]
			known := name == "podset-required-topology" && len(c.Gang.Roles) == 1 && c.Request.Topology.Required == level // the placement stage
			if level != "" && !known {
				out.Unmodelled = append(out.Unmodelled, fmt.Sprintf("the %s of %s, by which Kueue admits it: %s", name, role.Name, level))
			}
		}
	}
}

func noKueueQueue(c *stage.Context, kind, namespace, name string) *stage.Finding {
	var have []string
	for _, u := range c.View.Snap.Custom[kueue.Kind(kind)] {
		if u.GetNamespace() == namespace {
			have = append(have, u.GetName())
		}
	}
	f := stage.Found(answer.QueueNotFound, "%s %q does not exist, so Kueue never looks at the job; there are: %s", kind, name, phrase.Names(have)).
		Fact("queue", name).Fact("have", have)
	if kind == "ClusterQueue" {
		f.Who = answer.Admin
		return f
	}
	nearest := suggest.Nearest(name, have)
	if nearest == "" {
		return f
	}
	g := c.Gang
	return f.Detail("did you mean %s?", nearest).Fix(stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "use LocalQueue " + nearest, Change: map[string]any{"queue": nearest},
			Command: c.Kubectl("label", "--overwrite", ref(c), kueue.QueueLabel+"="+nearest)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Relabelled(s, g.Job, kueue.QueueLabel, nearest)
		},
	})
}

// kueueStopped finds that the queue was stopped, or Kueue finds it unusable.
func kueueStopped(out *stage.Result, q *unstructured.Unstructured) *stage.Finding {
	f := gang.Fields{Object: q}
	policy := f.String("spec", "stopPolicy")
	condition, active := stage.Condition(q, "Active")
	kind, name := q.GetKind(), q.GetName()
	if (policy == "" || policy == "None") && active == "False" && stage.Outdated(q, "Active") {
		out.Note("outdated: that %s %s is not active (%s) was reported of an earlier spec", kind, name, condition.Message)
		return nil
	}
	if (policy == "" || policy == "None") && active != "False" {
		return nil
	}
	if policy == "" || policy == "None" {
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
					activated(u)
				})
			},
		})
}

// repeats reports whether a LocalQueue is not active only because its ClusterQueue is not, or was not when that was reported.
func repeats(local *unstructured.Unstructured) bool {
	condition, _ := stage.Condition(local, "Active")
	return condition.Reason == "ClusterQueueIsInactive"
}

// missingFlavors adds the ResourceFlavors that a ClusterQueue names and that do not exist: Kueue finds it unusable until they do.
func missingFlavors(c *stage.Context, f *stage.Finding, queue *unstructured.Unstructured) *stage.Finding {
	if f.Facts["state"] != nil || !c.View.Snap.CanList("resourceflavors."+kueue.Group, "") {
		return f
	}
	var missing []string
	fields := gang.Fields{Object: queue}
	for _, group := range fields.List("spec", "resourceGroups") {
		flavors, _, _ := unstructured.NestedSlice(group, "flavors")
		for _, item := range flavors {
			flavor, _ := item.(map[string]any)
			name, _ := flavor["name"].(string)
			if name != "" && queueing.Object(c.View, "ResourceFlavor", "", name) == nil && !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
		}
	}
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
			return whatif.Edit(n, queue.GroupVersionKind().GroupKind(), "", queue.GetName(), activated)
		},
	})
}

// activated drops that a queue is not active.
func activated(u *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	whatif.Set(u, slices.DeleteFunc(conditions, func(item any) bool {
		cond, _ := item.(map[string]any)
		return cond["type"] == "Active"
	}), "status", "conditions")
}

// ref is how kubectl names the job.
func ref(c *stage.Context) string {
	if c.Gang.Reader.Resource == "" {
		return "pod/" + c.Gang.Meta.Name
	}
	return strings.ToLower(c.Gang.Kind.Kind) + "/" + c.Gang.Meta.Name
}

// namespaceNotSelected finds that the ClusterQueue takes Workloads of some namespaces only.
func namespaceNotSelected(c *stage.Context, queue *unstructured.Unstructured) *stage.Finding {
	f := gang.Fields{Object: queue}
	raw := f.Map("spec", "namespaceSelector")
	if raw == nil {
		return nil
	}
	i := slices.IndexFunc(c.View.Snap.Namespaces, func(ns *corev1.Namespace) bool { return ns.Name == c.Gang.Meta.Namespace })
	if i < 0 {
		return nil
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, selector); err != nil {
		return nil // the API server would not have accepted it
	}
	sel, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || sel.Matches(labels.Set(c.View.Snap.Namespaces[i].Labels)) {
		return nil
	}
	text := sel.String()
	if !c.Reader.SeesAll() {
		text = "other labels" // one of which is the name
	}
	return stage.Found(answer.QueueClosed, "ClusterQueue %s is closed to namespace %s: it takes only those with %s", queue.GetName(), c.Gang.Meta.Namespace, text).
		See(queue.GetAPIVersion(), queue.GetKind(), queue, ".spec.namespaceSelector").Fact("queue", queue.GetName()).Fact("selector", text)
}
