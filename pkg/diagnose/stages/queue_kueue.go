package stages

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/placement/cohort"
)

// hasKueueGate reports whether Kueue holds pods of the gang by a scheduling gate.
func (c *climb) hasKueueGate() bool {
	for _, m := range c.g.Members {
		if m.State == gang.Gated && slices.ContainsFunc(m.Pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == kueue.Gate }) {
			return true
		}
	}
	return false
}

// kueue looks whether Kueue admits the job: queue, its state, its quota.
func (c *climb) kueue() state {
	workload := c.workload()
	if workload != nil && admittedByKueue(workload) {
		return okf("admitted by Kueue")
	}
	name := c.localQueue(workload)
	if c.denied("localqueues."+kueue.Group, c.g.Meta.Namespace) || c.denied("clusterqueues."+kueue.Group, "") {
		return unknown("Kueue's queues may not be listed")
	}
	local := c.custom("LocalQueue", c.g.Meta.Namespace, name)
	if local == nil {
		c.add(*c.noKueueQueue("LocalQueue", c.g.Meta.Namespace, name))
		return ok
	}
	f := gang.Fields{Object: local}
	clusterName := f.String("spec", "clusterQueue")
	cluster := c.custom("ClusterQueue", "", clusterName)
	if cluster == nil {
		c.add(*c.noKueueQueue("ClusterQueue", "", clusterName))
		return ok
	}
	for _, q := range []*unstructured.Unstructured{local, cluster} {
		if f := c.kueueStopped(q); f != nil {
			c.add(*f)
		}
	}
	if f := c.notInvited(cluster); f != nil {
		c.add(*f)
	}
	if workload != nil {
		c.workloadChecks(workload)
	}
	if workload == nil || cohort.AdmittedTo(workload) == "" {
		before := len(c.findings)
		if f := c.kueueQuota(cluster, workload); f != nil {
			c.add(*f)
		}
		if workload != nil && len(c.findings) == before && !c.w.Assumed {
			c.kueueSays(workload)
		}
	}
	return okf(name + " in " + clusterName)
}

// localQueue is the name of the LocalQueue in which the job waits.
func (c *climb) localQueue(wl *unstructured.Unstructured) string {
	if name, ok := kueue.QueueOf(&c.g.Meta); ok {
		return name
	}
	if wl != nil {
		f := gang.Fields{Object: wl}
		return f.String("spec", "queueName")
	}
	if c.g.Decl != nil {
		return c.g.Decl.Queue
	}
	return ""
}

// object is an object of a kind without a type; nil if there is none of the name.
func (c *climb) object(kind schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	for _, u := range c.w.Snap.Custom[kind] {
		if u.GetName() == name && u.GetNamespace() == namespace {
			return u
		}
	}
	return nil
}

func (c *climb) custom(kind, namespace, name string) *unstructured.Unstructured {
	return c.object(kueue.Kind(kind), namespace, name)
}

func (c *climb) noKueueQueue(kind, namespace, name string) *Finding {
	var have []string
	for _, u := range c.w.Snap.Custom[kueue.Kind(kind)] {
		if u.GetNamespace() == namespace {
			have = append(have, u.GetName())
		}
	}
	f := found(answer.StageQueue, answer.QueueNotFound, answer.Blocked, answer.User, "%s %q does not exist, so Kueue never looks at the job; there are: %s", kind, name, phrase.Names(have)).
		fact("queue", name).fact("have", have)
	if kind == "ClusterQueue" {
		f.Who = answer.Admin
		return f
	}
	nearest := suggest.Nearest(name, have)
	if nearest == "" {
		return f
	}
	g := c.g
	return f.detail("did you mean %s?", nearest).fix(Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "use LocalQueue " + nearest, Change: map[string]any{"queue": nearest},
			Command: c.kubectl("label", "--overwrite", c.ref(), kueue.QueueLabel+"="+nearest)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := whatif.Edit(s, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) {
				labels := u.GetLabels()
				labels[kueue.QueueLabel] = nearest
				u.SetLabels(labels)
			})
			for i, j := range n.Jobs {
				if j.UID == g.Meta.UID {
					j = j.DeepCopy()
					j.Labels[kueue.QueueLabel] = nearest
					n.Jobs[i] = j
				}
			}
			return n
		},
	})
}

// kueueStopped: somebody stopped the queue, or Kueue finds it unusable.
func (c *climb) kueueStopped(q *unstructured.Unstructured) *Finding {
	f := gang.Fields{Object: q}
	policy := f.String("spec", "stopPolicy")
	word, active := condition(q, "Active")
	if (policy == "" || policy == "None") && active != "False" {
		return nil
	}
	kind, name := q.GetKind(), q.GetName()
	if policy == "" || policy == "None" {
		return found(answer.StageQueue, answer.QueueClosed, answer.Blocked, answer.Admin, "%s %s is not active: %s", kind, name, word.Message).
			see(q.GetAPIVersion(), kind, q, ".status.conditions").since(word.At).fact("queue", name)
	}
	return found(answer.StageQueue, answer.QueueClosed, answer.Blocked, answer.Admin, "%s %s is closed (stopPolicy %s): nothing new is admitted until it is open again", kind, name, policy).
		see(q.GetAPIVersion(), kind, q, ".spec.stopPolicy").fact("queue", name).fact("state", policy).
		fix(Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: fmt.Sprintf("open %s %s", kind, name), Change: map[string]any{"queue": name, "stopPolicy": "None"},
				Command: command.MergePatch(q.GetNamespace(), strings.ToLower(kind)+"."+kueue.Group, name, map[string]any{"spec": map[string]any{"stopPolicy": "None"}})},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(s, kueue.Kind(kind), q.GetNamespace(), name, func(u *unstructured.Unstructured) {
					whatif.Set(u, "None", "spec", "stopPolicy")
					conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
					conditions = slices.DeleteFunc(conditions, func(item any) bool {
						cond, _ := item.(map[string]any)
						return cond["type"] == "Active"
					})
					whatif.Set(u, conditions, "status", "conditions")
				})
			},
		})
}
