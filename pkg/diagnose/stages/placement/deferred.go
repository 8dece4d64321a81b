package placement

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// maxDeferred is of how many pods it is tried which of their resizes are in the way.
const maxDeferred = 8

// deferral is the condition of a pod that is to have more than its node has left: its kubelet waits until there is more. It is nil for any other pod.
func deferral(p *corev1.Pod) *corev1.PodCondition {
	_, cond := podutil.GetPodCondition(&p.Status, corev1.PodResizePending)
	if cond == nil || cond.Status != corev1.ConditionTrue || cond.Reason != corev1.PodReasonDeferred {
		return nil
	}
	return cond
}

// deferred are the pods of others whose resize is deferred: they have less than they are charged for.
func deferred(c *stage.Context) []*corev1.Pod {
	type deferredPods struct{}
	all := view.Once(c.View, deferredPods{}, func() (pods []*corev1.Pod) {
		for _, p := range c.View.Snap.Pods {
			if deferral(p) != nil && placement.Holds(p) && !c.View.Stuck(p) {
				pods = append(pods, p)
			}
		}
		return pods
	})
	own := sets.New(c.Request.Bound...)
	return slices.DeleteFunc(slices.Clone(all), func(p *corev1.Pod) bool { return own.Has(p.UID) })
}

// asItIs is a pod whose deferred resize is taken back: it requests what it has.
func asItIs(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	given := func(containers []corev1.Container, statuses []corev1.ContainerStatus) {
		for i := range containers {
			at := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == containers[i].Name })
			if at < 0 {
				continue
			}
			requests, limits := statuses[at].AllocatedResources, corev1.ResourceList(nil)
			if has := statuses[at].Resources; has != nil {
				requests, limits = has.Requests, has.Limits
			}
			overwrite(containers[i].Resources.Requests, requests)
			overwrite(containers[i].Resources.Limits, limits)
		}
	}
	given(p.Spec.InitContainers, p.Status.InitContainerStatuses)
	given(p.Spec.Containers, p.Status.ContainerStatuses)
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(cond corev1.PodCondition) bool { return cond.Type == corev1.PodResizePending })
	return p
}

// overwrite gives the amounts that there are the values of others.
func overwrite(amounts, with corev1.ResourceList) {
	for name := range amounts {
		if has, known := with[name]; known {
			amounts[name] = has
		}
	}
}

// takenBack adds to what was found since an index that the gang would fit if resizes that kubelets have deferred were taken back: for these room is charged that no pod has. The
// pods keep what they have.
func takenBack(c *stage.Context, out *stage.Result, from int) {
	pods := deferred(c)
	if len(out.Findings) == from || len(pods) == 0 || len(pods) > maxDeferred {
		return
	}
	fits := func(some []*corev1.Pod) bool { return c.Fit(changed(c.Cluster(), some, asItIs), nil).Fits() }
	if !fits(pods) {
		return
	}
	pods = placement.Needed(pods, func(some []*corev1.Pod) bool { return len(some) > 0 && fits(some) })
	f := &out.Findings[from]
	for _, p := range pods {
		f.Detail("%s on %s has %s and is charged for %s: its kubelet has deferred that resize, for %s", c.TitleOf("Pod", p), p.Spec.NodeName, differing(asItIs(p), p), differing(p, asItIs(p)),
			phrase.Age(c.View.Age(deferral(p).LastTransitionTime.Time))).See("v1", "Pod", p, ".status.conditions")
	}
	f.Fix(takeBack(c, pods))
}

// differing are the amounts that a pod requests and another one does not.
func differing(p, other *corev1.Pod) string {
	requests, others := request.Of(p), request.Of(other)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		if amount := request.Amount(name, requests[name]); amount != request.Amount(name, others[name]) {
			parts = append(parts, phrase.Amount(name, amount))
		}
	}
	return phrase.And(parts)
}

// takeBack is the fix that pods request what they have.
func takeBack(c *stage.Context, pods []*corev1.Pod) stage.Fix {
	by := answer.User
	var names, texts, commands []string
	will := map[types.UID]*corev1.Pod{}
	for _, p := range pods {
		if p.Namespace != c.Gang.Meta.Namespace {
			by = answer.Admin
		}
		as := asItIs(p)
		will[placement.PodID(p)] = as
		names = append(names, c.NameOf("pod", p))
		texts = append(texts, fmt.Sprintf("%s to %s", c.NameOf("pod", p), differing(as, p)))
		commands = append(commands, command.Kubectl(p.Namespace, "patch", "pod", p.Name, "--subresource", "resize", "-p", resizePatch(p, as)))
	}
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: by, Text: "take back the deferred resize of " + phrase.Names(texts), Cost: "it keeps what it has, and does not get more",
			Change: map[string]any{"pods": names}, Command: command.Then(commands...)},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			s = s.Clone()
			for i, p := range s.Pods {
				if as := will[placement.PodID(p)]; as != nil {
					s.Pods[i] = as
				}
			}
			return s
		},
	}
}

// resizePatch is the patch of the containers of a pod whose resources differ from those of another one.
func resizePatch(p, as *corev1.Pod) string {
	type container struct {
		Name      string                      `json:"name"`
		Resources corev1.ResourceRequirements `json:"resources"`
	}
	differs := func(was, is []corev1.Container) (all []container) {
		for i := range is {
			if !alikeIn(was[i].Resources.Requests, is[i].Resources.Requests) || !alikeIn(was[i].Resources.Limits, is[i].Resources.Limits) {
				all = append(all, container{is[i].Name, corev1.ResourceRequirements{Requests: is[i].Resources.Requests, Limits: is[i].Resources.Limits}})
			}
		}
		return all
	}
	spec := map[string]any{}
	if all := differs(p.Spec.Containers, as.Spec.Containers); len(all) > 0 {
		spec["containers"] = all
	}
	if all := differs(p.Spec.InitContainers, as.Spec.InitContainers); len(all) > 0 {
		spec["initContainers"] = all
	}
	text, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil { // amounts are always written
		return "{}"
	}
	return string(text)
}

// alikeIn reports whether two lists have the same amounts of what the first names.
func alikeIn(list, other corev1.ResourceList) bool {
	for name, amount := range list {
		if amount.Cmp(other[name]) != 0 {
			return false
		}
	}
	return true
}
