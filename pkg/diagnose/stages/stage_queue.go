package stages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kubebatch"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
)

// queueInMessage recognises a refusal of a PodGroup that is about its queue.
var queueInMessage = regexp.MustCompile("(?i)queue[^.]*`?(closed|closing|not found|not exist)|to queue with state")

// queue looks at the queue that admits the gang before any scheduler does.
func (c *climb) queue() state {
	var s state
	if c.heldByKueue() || c.hasKueueGate() {
		s = c.kueue()
	}
	kind, name, ok := c.queueObject()
	if !ok {
		c.quotaSaid()
		if s.word != "" {
			return s
		}
		return skippedf("no queue")
	}
	return c.objectQueue(kind, name)
}

// queueObject is the queue of a scheduler that keeps queues as objects. A gang object that could not be created yet would
// name the queue of the job's policy.
func (c *climb) queueObject() (schema.GroupKind, string, bool) {
	d := c.g.Decl
	if d == nil {
		if _, asked := c.groupProbe(); !asked && c.g.Named.Dialect != gang.Volcano || !c.w.Snap.Serves(schema.GroupResource{Group: volcano.Group, Resource: "queues"}, "Queue") {
			return schema.GroupKind{}, "", false
		}
		name := c.g.Queue
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
			if kind := (schema.GroupKind{Group: group, Kind: "Queue"}); len(c.w.Snap.Custom[kind]) > 0 {
				return kind, d.Queue, true
			}
		}
	case gang.KAI:
		return kai.QueueKind(), d.Queue, d.Queue != ""
	default: // the others keep no queues as objects, or none that admit
	}
	return schema.GroupKind{}, "", false
}

// gatedByQueue reports whether the queue has not admitted the gang, so that no pods are made.
func (c *climb) gatedByQueue() bool {
	return c.g.Decl != nil && c.g.Decl.Key.Dialect == gang.Volcano && c.g.Decl.Phase == volcano.PhasePending
}

func (c *climb) objectQueue(kind schema.GroupKind, name string) state {
	if c.denied("queues."+kind.Group, "") {
		c.queueRefused(name)
		return unknown("queues may not be listed")
	}
	queues := c.w.Snap.Custom[kind]
	if len(queues) == 0 {
		c.queueRefused(name)
		return unknown("no queue was seen at all") // every such scheduler has at least its default one
	}
	i := slices.IndexFunc(queues, func(u *unstructured.Unstructured) bool { return u.GetName() == name })
	if i < 0 {
		c.add(*c.queueNotFound(name, queues))
		return ok
	}
	q := queues[i]
	f := gang.Fields{Object: q}
	if status := f.String("status", "state"); status != "" && status != "Open" {
		c.add(*c.queueClosed(kind, q, status))
	}
	var children []string
	for _, other := range queues {
		o := gang.Fields{Object: other}
		if parent := o.String("spec", "parent"); parent == name || o.String("spec", "parentQueue") == name {
			children = append(children, other.GetName())
		}
	}
	if len(children) > 0 && name != "root" {
		c.add(*c.queueNotLeaf(q, children))
	}
	c.capability(kind, q)
	if kind == volcano.QueueKind() && c.gatedByQueue() && !c.has(answer.QueueClosed, answer.QueueQuota, answer.QueueTooSmall) {
		before := len(c.findings)
		if c.reserved(); len(c.findings) == before {
			c.queueSays(name)
		}
	}
	return okf(name)
}

// queueRefused: the queue cannot be seen, but the API server refused the gang's object for its sake.
func (c *climb) queueRefused(name string) {
	probe, asked := c.groupProbe()
	if !asked || probe.Accepted() || !queueInMessage.MatchString(probe.Message) {
		return
	}
	code, who := answer.QueueClosed, answer.Admin
	if strings.Contains(probe.Message, "not found") || strings.Contains(probe.Message, "not exist") {
		code, who = answer.QueueNotFound, answer.User
	}
	c.add(*found(answer.StageQueue, code, answer.Blocked, who, "the PodGroup of %s cannot be created in queue %s: %s", c.g.Meta.Name, name, strings.TrimSpace(probe.Message)).
		fact("queue", name).fact("code", probe.Code))
}

func (c *climb) queueNotFound(name string, queues []*unstructured.Unstructured) *Finding {
	var have []string
	for _, q := range queues {
		have = append(have, q.GetName())
	}
	f := found(answer.StageQueue, answer.QueueNotFound, answer.Blocked, answer.User, "queue %q does not exist, and the scheduler ignores the gang without a word; there are: %s", name, phrase.Names(have)).
		fact("queue", name).fact("have", have)
	nearest := suggest.Nearest(name, have)
	if nearest == "" && len(have) == 1 {
		nearest = have[0]
	}
	if nearest == "" {
		return f
	}
	return f.detail("did you mean %s?", nearest).fix(c.moveTo(nearest))
}

// moveTo puts the gang into another queue.
func (c *climb) moveTo(queue string) Fix {
	g := c.g
	fix := Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "use queue " + queue, Change: map[string]any{"queue": queue}},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := s
			if d := g.Decl; d != nil {
				n = whatif.Edit(n, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) {
					whatif.Set(u, queue, "spec", "queue")
				})
			}
			return whatif.Edit(n, g.Kind.GroupKind(), g.Meta.Namespace, g.Meta.Name, func(u *unstructured.Unstructured) {
				if g.Queue != "" {
					whatif.Set(u, queue, "spec", "runPolicy", "schedulingPolicy", "queue")
				}
			})
		},
	}
	if d := g.Decl; d != nil {
		fix.Command = command.MergePatch(d.Key.Namespace, strings.ToLower(d.Kind.Kind)+"."+d.Kind.Group, d.Key.Name, map[string]any{"spec": map[string]any{"queue": queue}})
	}
	return fix
}

func (c *climb) queueClosed(kind schema.GroupKind, q *unstructured.Unstructured, status string) *Finding {
	name := q.GetName()
	f := found(answer.StageQueue, answer.QueueClosed, answer.Blocked, answer.Admin, "queue %s is %s: nothing new is admitted", name, status).
		see(q.GetAPIVersion(), q.GetKind(), q, ".status.state").fact("queue", name).fact("state", status)
	if probe, asked := c.groupProbe(); asked && !probe.Accepted() && c.g.Decl == nil {
		f.Message = fmt.Sprintf("queue %s is %s, so the PodGroup of %s cannot be created", name, status, c.g.Meta.Name)
		f.detail("the API server, asked just now: %s", strings.TrimSpace(probe.Message))
	}
	return f.fix(Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "open queue " + name, Change: map[string]any{"queue": name, "state": "Open"},
			Command: "vcctl queue operate -n " + name + " -a open"},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := whatif.Edit(s, kind, "", name, func(u *unstructured.Unstructured) { whatif.Set(u, "Open", "status", "state") })
			return whatif.WithoutProbes(n, "PodGroup")
		},
	})
}

func (c *climb) queueNotLeaf(q *unstructured.Unstructured, children []string) *Finding {
	f := found(answer.StageQueue, answer.QueueNotLeaf, answer.Blocked, answer.User, "queue %s has queues below it (%s) and takes no gangs itself", q.GetName(), phrase.Names(children)).
		see(q.GetAPIVersion(), q.GetKind(), q, ".metadata.name").fact("queue", q.GetName()).fact("children", children)
	for _, child := range children[:min(len(children), 3)] {
		f.fix(c.moveTo(child))
	}
	return f
}
