package claims

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"

	"github.com/gangctl/gangctl/pkg/diagnose/audience"
	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

// Name is the plugin's name in a configuration file.
const Name = "GangClaims"

// stateKey is where a cycle keeps the claims that bind its pod.
const stateKey fwk.StateKey = Name

// Plugin keeps pods off room that is claimed for others.
type Plugin struct{ ledger *Ledger }

var (
	_ fwk.PreFilterPlugin   = &Plugin{}
	_ fwk.FilterPlugin      = &Plugin{}
	_ fwk.ReservePlugin     = &Plugin{}
	_ fwk.EnqueueExtensions = &Plugin{}
	_ fwk.SignPlugin        = &Plugin{}
)

// NewPlugin returns the plugin of one profile; it is a frameworkruntime.PluginFactory.
func (l *Ledger) NewPlugin(_ context.Context, object runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	if _, err := args.Decode(object, DefaultArgs()); err != nil {
		return nil, err
	}
	return &Plugin{ledger: l}, nil
}

// Name implements fwk.Plugin.
func (p *Plugin) Name() string { return Name }

// bound are the claims that bind a pod, by node.
type bound map[string][]*entry

// Clone implements fwk.StateData: claims do not change, and neither does this.
func (b bound) Clone() fwk.StateData { return b }

// PreFilter collects the claims that bind the pod. It runs after the PreFilter of
// the plugins that derive claims from the cycle's snapshot, and once for a pod,
// where Filter runs for each node.
func (p *Plugin) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	consumer := ConsumerOf(pod)
	byNode := p.ledger.bindingByNode(consumer, p.lost(state, consumer), pod)
	if len(byNode) == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	state.Write(stateKey, byNode)
	return nil, nil
}

// PreFilterExtensions implements fwk.PreFilterPlugin. There are none: pods that
// come and go in a dry run are seen on the node.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter refuses a node on which the pod would take claimed room. A node that has
// no room for the pod is not refused here: others report why. The claims of one
// kind are charged together, because they were made to fit alongside each other;
// those of different kinds are not, because one consumer may have claims of two.
//
// The refusal can be resolved, so that a pod that may preempt looks at the node.
func (p *Plugin) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil // PreFilter found no claims
	}
	byNode, ok := data.(bound)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("state of %s is a %T", Name, data))
	}
	claims := byNode[node.Node().Name]
	if len(claims) == 0 || !hasRoom(pod, node) {
		return nil
	}
	for _, kind := range kinds {
		of := slices.DeleteFunc(slices.Clone(claims), func(e *entry) bool { return e.Kind != kind })
		admitted, err := admits(klog.FromContext(ctx), of, pod, node)
		if err == nil && !admitted {
			// A claim may have ended since the snapshot was made.
			of = p.ledger.refuse(pod, of)
			admitted, err = admits(klog.FromContext(ctx), of, pod, node)
		}
		switch {
		case err != nil:
			return fwk.AsStatus(err)
		case !admitted:
			p.ledger.rejected.WithLabelValues(string(kind)).Inc()
			return fwk.NewStatus(fwk.Unschedulable, reasons(of, p.ledger.Reader(pod.Namespace)))
		}
	}
	return nil
}

// admits reports whether a pod fits on a node alongside claims: without the pods that
// leave it, and with those that come.
func admits(logger klog.Logger, claims []*entry, pod *corev1.Pod, node fwk.NodeInfo) (bool, error) {
	if len(claims) == 0 {
		return true, nil
	}
	then := node.Snapshot()
	for _, info := range node.GetPods() {
		leaving := func(e *entry) bool { return e.Leaving[info.GetPod().UID] }
		if !slices.ContainsFunc(claims, leaving) {
			continue
		}
		if err := then.RemovePod(logger, info.GetPod()); err != nil {
			return false, fmt.Errorf("take pod %s off its node: %w", klog.KObj(info.GetPod()), err)
		}
	}
	for _, e := range claims {
		then.AddPodInfo(e.info)
	}
	return hasRoom(pod, then), nil
}

// Fits reports whether a node itself has the resources and host ports that a pod
// requests. It is to find the node that a lost member was on. [hasRoom] is for nodes
// where devices may stand behind a resource (dynamic resource allocation).
func Fits(pod *corev1.Pod, node fwk.NodeInfo) bool {
	return len(lacking(pod, node)) == 0 && nodeports.Fits(pod, node)
}

// hasRoom reports whether a pod fits on a node as far as the node offers what it
// requests. Devices may stand behind a resource that it does not offer (dynamic
// resource allocation); where none do, others refuse the node.
func hasRoom(pod *corev1.Pod, node fwk.NodeInfo) bool {
	offered := func(r noderesources.InsufficientResource) bool { return r.Capacity > 0 }
	return !slices.ContainsFunc(lacking(pod, node), offered) && nodeports.Fits(pod, node)
}

func lacking(pod *corev1.Pod, node fwk.NodeInfo) []noderesources.InsufficientResource {
	return noderesources.Fits(pod, node, nil, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})
}

// mostReasons is how many claims a refusal names.
const mostReasons = 3

// reasons is why a node is refused, the same of every node with the same claims.
func reasons(claims []*entry, reader audience.Reader) string {
	var whys []string
	for _, e := range claims {
		whys = append(whys, e.Why.For(reader))
	}
	slices.Sort(whys)
	whys = slices.Compact(whys)
	if more := len(whys) - mostReasons; more > 0 {
		whys = append(whys[:mostReasons], fmt.Sprintf("and for %d others", more))
	}
	return strings.Join(whys, ", ")
}

// EventsToRegister names what leaves room alongside a claim. A claim that ends is no
// event of the cluster: the ledger activates those it kept waiting. Some end when
// the next cycle looks, and those a change of a gang or a pod that got a node may
// end: then a cycle is needed, as long as there are claims.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	hint := func(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) {
		if p.ledger.any() {
			return fwk.Queue, nil
		}
		return fwk.QueueSkip, nil
	}
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable}},
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Add}, QueueingHintFn: hint},
		{Event: fwk.ClusterEvent{Resource: fwk.PodGroup, ActionType: fwk.Update | fwk.Delete}, QueueingHintFn: hint},
	}, nil
}

// SignPod keeps the result for a pod that a claim binds from being reused for the
// next one, which may be bound by others.
func (p *Plugin) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if len(p.ledger.binding(ConsumerOf(pod), nil, pod)) > 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, "room is claimed")
	}
	return nil, nil
}
