package advice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/kind/jobset"
	"github.com/gangctl/gangctl/pkg/gang/kind/leaderworkerset"
	"github.com/gangctl/gangctl/pkg/gang/kind/ray"
	"github.com/gangctl/gangctl/pkg/gang/kind/trainjob"
)

// evictor searches for what could be evicted.
type evictor struct{ *search }

// evict offers to take room from services, which never end, and from jobs of lower priority. Never from equals: that is for
// people to decide. Never from what the system itself runs on.
func (s evictor) evict() {
	mine, preempts := s.priority()
	victims := s.otherConsumers(func(h *view.Consumer) bool {
		return h.Priority() < criticalPriority && len(h.Stuck(s.w.Now)) == 0 && (!h.Ends || preempts && h.Priority() < mine)
	})
	for i, set := range s.minimal(victims, cheapest) {
		if i == maxSets {
			return
		}
		s.offer(s.eviction(set))
	}
}

// priority is that of the gang, and whether it may preempt.
func (s evictor) priority() (value int32, preempts bool) {
	terms := stage.TermsOf(s.base.Request)
	return terms.Priority, terms.Policy == ""
}

// lower reads like (priority 5 < 50), with a space before it, for a job that the gang may preempt.
func (s evictor) lower(h *view.Consumer) string {
	mine, preempts := s.priority()
	if !h.Ends || !preempts || h.Priority() >= mine {
		return ""
	}
	return fmt.Sprintf(" (priority %d < %d)", h.Priority(), mine)
}

// cheapest puts first what is left over or matters least, and of equals what has fewer pods.
func cheapest(all []*view.Consumer) []*view.Consumer {
	slices.SortStableFunc(all, func(a, b *view.Consumer) int {
		if a.Leftover() != b.Leftover() {
			if a.Leftover() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.Priority(), b.Priority()), len(a.Pods)-len(b.Pods))
	})
	return all
}

func (s evictor) eviction(set []*view.Consumer) stage.Fix {
	var names, texts, costs, commands []string
	for _, h := range set {
		names = append(names, s.naming().Name(h))
		texts = append(texts, s.naming().Title(h)+s.lower(h))
		cmd, cost := s.evictCommand(h)
		commands, costs = append(commands, cmd), append(costs, fmt.Sprintf("%s %s", s.naming().Name(h), cost))
	}
	return stage.Fix{
		Action: answer.Action{Kind: answer.Evict, By: answer.Admin, Text: "take the room of " + phrase.Names(texts), Cost: phrase.Names(costs),
			Change: map[string]any{"jobs": names}, Command: command.Then(commands...)},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot { return s.gone(snap, set) },
	}
}

// evictCommand frees what a consumer uses in the gentlest way that its kind has, and reports what that costs.
func (s evictor) evictCommand(h *view.Consumer) (cmd, cost string) {
	kind := kindOf(h)
	resource := strings.ToLower(kind.Kind)
	switch {
	case h.Job != nil && h.Job.End != nil:
		return command.DeletePods(h.Namespace, h.Pods), "has ended already"
	case h.Job != nil && s.admission(h) != "": // Kueue would resume what another client suspends
		return command.MergePatch(h.Namespace, "workload."+kueue.Group, s.admission(h), map[string]any{"spec": map[string]any{"active": false}}),
			"is suspended, and starts again when its Workload is active again"
	case kind.Group == "apps" && kind.Kind != "DaemonSet":
		return command.Kubectl(h.Namespace, "scale", resource+"/"+h.Name, "--replicas=0"), "serves no more until it is scaled up again"
	case kind == leaderworkerset.Reader().GroupKind:
		return command.Kubectl(h.Namespace, "scale", resource+"/"+h.Name, "--replicas=0"), "serves no more until it is scaled up again"
	case kind.Group == batchv1.GroupName && kind.Kind == "Job", kind == jobset.Reader().GroupKind, kind == ray.ClusterReader().GroupKind,
		kind == trainjob.Reader().GroupKind:
		return command.MergePatch(h.Namespace, resource, h.Name, map[string]any{"spec": map[string]any{"suspend": true}}), "is suspended, and starts its pods again when it is resumed"
	case kind.Group == "kubeflow.org" && h.Job != nil && whatif.Suspends(h.Job, h.Pods):
		return command.MergePatch(h.Namespace, resource, h.Name, map[string]any{"spec": map[string]any{"runPolicy": map[string]any{"suspend": true}}}),
			"is suspended, and starts again from its last checkpoint when it is resumed"
	case kind.Group != "":
		resource += "." + kind.Group // several groups have a kind of this name
	}
	return command.Kubectl(h.Namespace, "delete", resource, h.Name), "is deleted, and has to be submitted again"
}

// admission is Kueue's Workload for a job that Kueue runs; "" for others.
func (s evictor) admission(h *view.Consumer) string {
	for _, u := range s.w.Snap.Custom[kueue.Kind("Workload")] {
		if ref := metav1.GetControllerOf(u); ref != nil && ref.UID == h.Job.Meta.UID {
			return u.GetName()
		}
	}
	return ""
}

// kindOf is the kind of a consumer with its group, from the controllers of its pods.
func kindOf(h *view.Consumer) schema.GroupKind {
	if h.Job != nil {
		return h.Job.Kind.GroupKind()
	}
	for _, p := range h.Pods {
		if ref := metav1.GetControllerOf(p); ref != nil && ref.Kind == h.Kind && ref.Name == h.Name {
			return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
		}
	}
	if h.Kind == "Deployment" {
		return schema.GroupKind{Group: "apps", Kind: h.Kind}
	}
	return schema.GroupKind{Kind: h.Kind}
}
