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

// spurious is the engine's message when it gave up on a gang before its plugin for devices had seen any member: fewer members are left
// than the minimum, or another plugin refused all of them first. The plugin then fails because it has no state, and its error replaces
// the reason for which the gang was refused.
var spurious = fmt.Sprintf("error in %q PodGroupPostFilter plugins: %s", dynamicresources.Name, fwk.ErrNotFound)

// Spurious reports whether a message is that error, for a gang that was refused like any other. The reason is in the store of reasons.
func Spurious(message string) bool { return strings.HasSuffix(message, spurious) }

// isSpurious reports whether a status is that error.
func isSpurious(status *fwk.Status) bool { return status.IsError() && Spurious(status.Message()) }

// membersGone is the message on a gang of which the engine has tried no member.
const membersGone = "members that its gang needs have gone"

// why returns the first reason for which the engine refused the gang.
func (c *cycle) why() string {
	if c.firstPass.refused == "" {
		return membersGone
	}
	return fmt.Sprintf("pod %s: %s", c.firstPass.refused, c.firstPass.why)
}

// memberRefusal returns the status of a member for that reason.
func (c *cycle) memberRefusal(pod *corev1.Pod, nodes int) *fwk.Status {
	fit := &framework.FitError{Pod: pod, NumAllNodes: nodes, Diagnosis: framework.Diagnosis{
		NodeToStatus: framework.NewDefaultNodeToStatus(), UnschedulablePlugins: sets.New(Name), PreFilterMsg: c.why(),
	}}
	return fwk.NewStatus(fwk.Unschedulable).WithError(fit)
}

// cleared returns the status of an attempt, without a spurious error.
func (p *Planner) cleared(group types.NamespacedName, status *fwk.Status) *fwk.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isSpurious(status) || p.current == nil || p.current.group != group {
		return status
	}
	return fwk.NewStatus(fwk.Unschedulable, p.current.why())
}
