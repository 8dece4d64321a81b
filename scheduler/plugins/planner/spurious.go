package planner

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
)

// spurious is the engine's message when it gave up on a gang before its plugin for devices had looked at any member: fewer are
// left than the gang needs, or another plugin refused all of them first. That plugin fails then, for want of what it would have
// kept, and its fault takes the place of what the gang was refused for.
var spurious = fmt.Sprintf("error in %q PodGroupPostFilter plugins: %s", dynamicresources.Name, fwk.ErrNotFound)

// Spurious reports whether a message is that of a fault of the engine behind which a gang was refused as any other. What it was
// refused for has been reported to the store of reasons.
func Spurious(message string) bool { return strings.HasSuffix(message, spurious) }

// isSpurious reports whether a status has that message.
func isSpurious(status *fwk.Status) bool { return status.IsError() && Spurious(status.Message()) }

// why is what the engine refused the gang for before all else.
func (c *cycle) why() string {
	if c.tried.refused == "" {
		return "members that its gang needs have gone"
	}
	return fmt.Sprintf("pod %s: %s", c.tried.refused, c.tried.why)
}

// memberRefusal is that of a member.
func (c *cycle) memberRefusal(pod *corev1.Pod, nodes int) *fwk.Status {
	fit := &framework.FitError{Pod: pod, NumAllNodes: nodes, Diagnosis: framework.Diagnosis{
		NodeToStatus: framework.NewDefaultNodeToStatus(), UnschedulablePlugins: sets.New(Name), PreFilterMsg: c.why(),
	}}
	return fwk.NewStatus(fwk.Unschedulable).WithError(fit)
}

// cleared is the status of an attempt, without such a fault.
func (p *Planner) cleared(group types.NamespacedName, status *fwk.Status) *fwk.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isSpurious(status) || p.now == nil || p.now.group != group {
		return status
	}
	return fwk.NewStatus(fwk.Unschedulable, p.now.why())
}
