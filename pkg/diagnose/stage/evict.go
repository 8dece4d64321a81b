package stage

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// CriticalPriority is from where on pods are of the system's own classes.
const CriticalPriority = 2000000000

// Evictable reports whether people may take the room of a consumer: it is not what the system itself runs on, and not stuck on its way out.
func (n Naming) Evictable(h *view.Consumer) bool {
	return h.Priority() < CriticalPriority && !slices.ContainsFunc(h.Pods, n.View.Stuck)
}

// Lower reads like (priority 5 < 50), with a space before it, for a consumer that a gang of some terms may preempt.
func Lower(h *view.Consumer, mine gang.Terms) string {
	if mine.Policy != "" || h.Priority() >= mine.Priority {
		return ""
	}
	return fmt.Sprintf(" (priority %d < %d)", h.Priority(), mine.Priority)
}

// Evict is the fix that the room of some consumers is taken for a gang of some terms.
func (n Naming) Evict(set []*view.Consumer, mine gang.Terms) Fix {
	var names, texts, costs, commands []string
	replicas, going := map[string]int{}, []string(nil)
	for _, h := range set {
		way, whole, some := n.GiveWay(h), h, ""
		if h.Whole != nil {
			whole, some = h.Whole, fmt.Sprintf("%d of %s of ", len(h.Pods), phrase.Count(len(h.Whole.Pods), "pod"))
			replicas[n.Name(whole)] = way.Replicas
			if !h.AnyOf {
				going = append(going, n.PodNames(h.Pods)...)
			}
		}
		names = append(names, n.Name(whole))
		texts = append(texts, some+n.Title(whole)+Lower(whole, mine))
		cost := fmt.Sprintf("%s %s", n.Name(whole), way.Cost)
		if guarded := n.Guarded(h.Pods); guarded != "" {
			cost += fmt.Sprintf("; %s, which the command does not respect", guarded)
		}
		commands, costs = append(commands, way.Command), append(costs, cost)
	}
	pods, owners := PodsAndOwners(set)
	change := map[string]any{"jobs": names}
	if len(replicas) > 0 {
		change["replicas"] = replicas
	}
	if len(going) > 0 {
		change["pods"] = going
	}
	return Fix{
		Action: answer.Action{Kind: answer.Evict, By: answer.Admin, Text: "take the room of " + phrase.Names(texts), Cost: phrase.Names(costs), Change: change, Command: command.Then(commands...)},
		Apply:  func(snap *snapshot.Snapshot) *snapshot.Snapshot { return whatif.Gone(snap, pods, owners...) },
		Evicts: set,
	}
}

// PodsAndOwners are the pods of some consumers, and the jobs that own them.
func PodsAndOwners(set []*view.Consumer) (pods []*corev1.Pod, owners []gang.Identity) {
	for _, h := range set {
		pods = append(pods, h.Pods...)
		if h.Job != nil {
			owners = append(owners, gang.IdentityOf(&h.Job.Meta))
		}
	}
	return pods, owners
}
