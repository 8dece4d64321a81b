package placement

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

func newCycleState() fwk.CycleState { return framework.NewCycleState() }

// built returns a plugin that cannot fail to build, because its arguments are constants.
func built(p fwk.Plugin, err error) filter {
	if err != nil {
		panic(fmt.Sprintf("fit: build scheduler plugin: %v", err))
	}
	return p.(filter)
}

func (c *Cluster) handle() *handle {
	factory, _ := c.store.get(c.objects)
	return &handle{c: c, factory: factory}
}

// ports rejects nodes on which a host port of the pod is taken.
func (c *Cluster) ports(pod *corev1.Pod) check {
	wanted := util.GetHostPorts(pod)
	if len(wanted) == 0 {
		return nil
	}
	return func(n *node) []Violation {
		if nodeports.Fits(pod, n.info) {
			return nil
		}
		var taken []string
		for _, p := range wanted {
			if n.info.UsedPorts.CheckConflict(p.HostIP, string(p.Protocol), p.HostPort) {
				taken = append(taken, fmt.Sprintf("%d/%s", p.HostPort, p.Protocol))
			}
		}
		return []Violation{{Constraint: HostPort, Detail: strings.Join(taken, " ")}}
	}
}

// interPod asks the upstream plugin about the affinity of the pod as it stands.
func (c *Cluster) interPod(pod *corev1.Pod) func(*node) string {
	_, features := c.store.get(c.objects)
	p, err := interpodaffinity.New(context.Background(), &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, c.handle(), features)
	return c.asked(built(p, err), pod)
}

// apart rejects nodes by required anti-affinity: the pod's own, and that of pods that are there.
func (c *Cluster) apart(pod *corev1.Pod) check {
	only := *pod
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		only.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: a.PodAntiAffinity}
	}
	return checkOf(PodAntiAffinity, c.interPod(&only))
}

// together rejects nodes by the pod's required affinity alone.
func (c *Cluster) together(pod *corev1.Pod) check {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	only := *pod
	only.Spec.Affinity = &corev1.Affinity{PodAffinity: pod.Spec.Affinity.PodAffinity}
	ask := c.interPod(&only)
	if ask == nil {
		return nil
	}
	return checkOf(PodAffinity, func(n *node) string {
		if reason := ask(n); reason == interpodaffinity.ErrReasonAffinityRulesNotMatch {
			return reason
		}
		return ""
	})
}

// evenly rejects nodes by the pod's topology spread constraints.
func (c *Cluster) evenly(pod *corev1.Pod) check {
	if len(pod.Spec.TopologySpreadConstraints) == 0 {
		return nil
	}
	_, features := c.store.get(c.objects)
	p, err := podtopologyspread.New(context.Background(), &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting}, c.handle(), features)
	return checkOf(TopologySpread, c.asked(built(p, err), pod))
}

// checkOf turns what a plugin says into a check.
func checkOf(word Constraint, ask func(*node) string) check {
	if ask == nil {
		return nil
	}
	return func(n *node) []Violation {
		if reason := ask(n); reason != "" {
			return []Violation{{Constraint: word, Detail: reason}}
		}
		return nil
	}
}
