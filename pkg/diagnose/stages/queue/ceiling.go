package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// ceiling is the limit of one resource in a queue.
type ceiling struct {
	name  corev1.ResourceName
	limit int64 // in the unit of request.Quantity
	path  []string
	// raw is an amount as the field writes it.
	raw func(int64) any
	// firm is true for a limit that only gangs feel that cannot be preempted.
	firm bool
	// level is what the limit is left of, where it is no field of the queue: others of its level are guaranteed the rest, or none.
	level *level
}

// ceilings are the hard limits of a queue, device first, and of one resource the lowest first.
func ceilings(c *stage.Context, kind schema.GroupKind, q *unstructured.Unstructured, need corev1.ResourceList) []ceiling {
	f := gang.Fields{Object: q}
	var all []ceiling
	if kind == kai.QueueKind() {
		for _, r := range kai.QueueAmounts() {
			for _, field := range []string{"limit", "quota"} {
				if limit, bounded := r.Of(q, field); bounded {
					all = append(all, ceiling{name: r.Name, limit: limit, path: []string{"spec", "resources", r.Field, field}, firm: field == "quota",
						raw: func(amount int64) any { return (amount + r.Unit - 1) / r.Unit }})
				}
			}
		}
		return all
	}
	list := f.Resources("spec", "capability")
	for _, name := range slices.SortedFunc(maps.Keys(list), devicesFirst) {
		limit := request.Amount(name, list[name])
		if kind == volcano.QueueKind() && !counted(name) || limit <= 0 && (name == corev1.ResourceCPU || name == corev1.ResourceMemory) {
			continue // Volcano reads no cpu and no memory as no limit
		}
		all = append(all, ceiling{name: name, limit: limit, path: []string{"spec", "capability", string(name)},
			raw: func(amount int64) any { return phrase.Quantity(name, amount) }})
	}
	if kind != volcano.QueueKind() {
		return all
	}
	for _, l := range levels(c, q, need) {
		all = append(all, ceiling{name: l.name, limit: l.left(), level: &l})
	}
	slices.SortStableFunc(all, func(a, b ceiling) int { return cmp.Or(devicesFirst(a.name, b.name), cmp.Compare(a.limit, b.limit)) })
	return all
}

// devicesFirst orders resources: what users look for comes first.
func devicesFirst(a, b corev1.ResourceName) int {
	if request.IsGPU(a) != request.IsGPU(b) {
		if request.IsGPU(a) {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}

// why explains a limit in a sentence, where it is no plain field of the queue.
func (l ceiling) why() string {
	switch {
	case l.firm:
		return " for gangs that cannot be preempted"
	case l.level != nil:
		return l.level.why()
	}
	return ""
}

// see adds as evidence where the limit is from.
func (l ceiling) see(f *stage.Finding, q *unstructured.Unstructured) {
	if l.level == nil {
		f.See(q.GetAPIVersion(), q.GetKind(), q, "."+strings.Join(l.path, "."))
		return
	}
	for _, g := range l.level.others {
		f.See(g.queue.GetAPIVersion(), g.queue.GetKind(), g.queue, ".spec.guarantee.resource")
		f.Detail("queue %s is guaranteed %s, used or not", g.queue.GetName(), phrase.Amount(l.name, g.amount))
	}
}

// fixes make a queue allow so much.
func (l ceiling) fixes(kind schema.GroupKind, q *unstructured.Unstructured, total int64) []stage.Fix {
	if l.level != nil {
		return l.level.fixes(total)
	}
	text := phrase.Quantity(l.name, total)
	return []stage.Fix{{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise %s of queue %s to %s", l.name, q.GetName(), text),
			Change:  map[string]any{"limit": text, "object": "Queue/" + q.GetName(), "resource": string(l.name)},
			Command: command.JSONPatch("", "queue."+kind.Group, q.GetName(), command.Patch{Op: "replace", Path: command.Pointer(l.path), Value: l.raw(total)})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, kind, "", q.GetName(), func(u *unstructured.Unstructured) { whatif.Set(u, l.raw(total), l.path...) })
		},
	}}
}
