package stages

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// workload is Kueue's view of the job. That of a group of pods is owned by each of them.
func (c *climb) workload() *unstructured.Unstructured {
	mine := map[types.UID]bool{c.g.Meta.UID: true}
	if c.g.Bare != nil {
		for _, p := range c.g.Bare {
			mine[p.UID] = true
		}
	}
	delete(mine, "")
	for _, u := range c.w.Snap.Custom[kueue.Kind("Workload")] {
		if slices.ContainsFunc(u.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return mine[ref.UID] }) {
			return u
		}
	}
	return nil
}

func condition(u *unstructured.Unstructured, kind string) (gang.Word, string) {
	f := gang.Fields{Object: u}
	for _, cond := range f.List("status", "conditions") {
		if cond["type"] == kind {
			status, _ := cond["status"].(string)
			return gang.WordOf(cond), status
		}
	}
	return gang.Word{}, ""
}

func admittedByKueue(u *unstructured.Unstructured) bool {
	_, status := condition(u, "Admitted")
	return status == "True"
}

// workloadChecks: switched off, or waiting for an admission check.
func (c *climb) workloadChecks(u *unstructured.Unstructured) {
	f := gang.Fields{Object: u}
	if active, found2, _ := unstructured.NestedBool(u.Object, "spec", "active"); found2 && !active {
		c.add(*found(answer.StageQueue, answer.KueueInactive, answer.Blocked, answer.User, "Workload %s is switched off (spec.active is false): Kueue will not admit it", u.GetName()).
			see(u.GetAPIVersion(), u.GetKind(), u, ".spec.active").fix(Fix{
			Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: "switch the Workload on", Change: map[string]any{"active": true},
				Command: command.MergePatch(u.GetNamespace(), "workload."+kueue.Group, u.GetName(), map[string]any{"spec": map[string]any{"active": true}})},
			Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
				return whatif.Edit(s, kueue.Kind("Workload"), u.GetNamespace(), u.GetName(), func(w *unstructured.Unstructured) { whatif.Set(w, true, "spec", "active") })
			},
		}))
	}
	for _, check := range f.List("status", "admissionChecks") {
		state := fmt.Sprint(check["state"])
		if state == "Ready" {
			continue
		}
		verdict, who := answer.Waiting, answer.Nobody
		if state == "Rejected" {
			verdict, who = answer.Blocked, answer.Admin // Kueue does not ask again
		}
		c.add(*found(answer.StageQueue, answer.KueueCheck, verdict, who, "admission check %v is %s: %v", check["name"], state, check["message"]).
			see(u.GetAPIVersion(), u.GetKind(), u, ".status.admissionChecks").fact("check", check["name"]).fact("state", state))
	}
}

// notInvited: the ClusterQueue takes Workloads of some namespaces only.
func (c *climb) notInvited(queue *unstructured.Unstructured) *Finding {
	f := gang.Fields{Object: queue}
	raw := f.Map("spec", "namespaceSelector")
	if raw == nil {
		return nil
	}
	i := slices.IndexFunc(c.w.Snap.Namespaces, func(ns *corev1.Namespace) bool { return ns.Name == c.g.Meta.Namespace })
	if i < 0 {
		return nil
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, selector); err != nil {
		return nil // the API server would not have accepted it
	}
	sel, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || sel.Matches(labels.Set(c.w.Snap.Namespaces[i].Labels)) {
		return nil
	}
	return found(answer.StageQueue, answer.QueueClosed, answer.Blocked, answer.Admin, "ClusterQueue %s is closed to namespace %s: it takes only those with %s", queue.GetName(), c.g.Meta.Namespace, sel).
		see(queue.GetAPIVersion(), queue.GetKind(), queue, ".spec.namespaceSelector").fact("queue", queue.GetName()).fact("selector", sel.String())
}

// shortWords are how Kueue says that there is too little quota now. It may have said so of a state that is history.
var shortWords = regexp.MustCompile(`insufficient (unused )?quota|more needed`)

// kueueSays: by the numbers there is quota, but Kueue has not admitted the job. It may know more: topology, preemption under
// way, a limit on how many may start at once, a pause after an eviction.
func (c *climb) kueueSays(u *unstructured.Unstructured) {
	f := gang.Fields{Object: u}
	name := u.GetName()
	if at, err := time.Parse(time.RFC3339, f.String("status", "requeueState", "requeueAt")); err == nil && at.After(c.w.Now) {
		x := found(answer.StageQueue, answer.KueueQuota, answer.Waiting, answer.Nobody, "Kueue tries again at %s, in %s: it has put Workload %s back %d times", phrase.Clock(at, c.w.Now), phrase.Age(at.Sub(c.w.Now)), name, f.Int32("status", "requeueState", "count")).
			see(u.GetAPIVersion(), u.GetKind(), u, ".status.requeueState").fact("requeueAt", at.UTC().Format(time.RFC3339))
		if word, status := condition(u, "Evicted"); status == "True" {
			x.detail("evicted %s ago (%s): %s", phrase.Age(c.w.Age(word.At)), word.Reason, word.Message)
		}
		c.add(*x)
		return
	}
	word, status := condition(u, "QuotaReserved")
	switch {
	case status != "False" || word.Message == "" || word.Reason == "PendingEvaluation" || strings.Contains(word.Message, "evicted"):
	case shortWords.MatchString(word.Message):
		c.Notes = append(c.Notes, fmt.Sprintf("Kueue said %s ago: %s; by the quotas and Workloads of now there is enough", phrase.Age(c.w.Age(word.At)), word.Message))
	default:
		c.add(*found(answer.StageQueue, answer.KueueQuota, answer.Waiting, answer.Nobody, "Kueue has not admitted it: %s", word.Message).
			see(u.GetAPIVersion(), u.GetKind(), u, ".status.conditions").since(word.At).fact("reason", word.Reason))
	}
}
