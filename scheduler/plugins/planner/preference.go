package planner

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// preferencePlugins are the engine's scoring plugins for the preferences of users. The others score for the cluster, as the planner does
// by itself.
var preferencePlugins = []string{names.NodeAffinity, names.InterPodAffinity, names.PodTopologySpread, names.TaintToleration}

// preferred returns a rank for nodes: first those with claims for the gang, or for which members are nominated, then by the preferences of members. It is nil
// where no node is better than another.
func (q *query) preferred(ctx context.Context) func(*corev1.Node) int64 {
	preferences := q.preferences(ctx)
	own := q.planner.claims.Nodes(q.cycle.group)
	for _, pod := range q.cycle.pods() {
		if node := pod.Status.NominatedNodeName; node != "" && !slices.Contains(own, node) {
			own = append(own, node)
		}
	}
	if len(own) == 0 {
		return preferences
	}
	return func(n *corev1.Node) int64 {
		var rank int64
		if preferences != nil {
			rank = preferences(n)
		}
		if slices.Contains(own, n.Name) {
			rank += ownBonus
		}
		return rank
	}
}

// ownBonus outweighs any score: a plugin gives at most 100, times its weight, for each of at most some thousand members.
const ownBonus = 1 << 40

// preferences returns the sum of the engine's scores for the members' preferences, with one pass for each role. It is nil where no member
// has preferences, which is the rule: that taints are rather avoided, package placement knows by itself.
func (q *query) preferences(ctx context.Context) func(*corev1.Node) int64 {
	if !q.members.prefers {
		return nil
	}
	f, ok := q.plugin.handle.(framework.Framework)
	if !ok {
		return nil
	}
	sum := map[string]int64{}
	for _, role := range q.members.roles {
		state := framework.NewCycleState()
		state.Write(memberKey, scored()) // scores need no count of what constraints select
		if _, status, _ := f.RunPreFilterPlugins(ctx, state, role.Pod); !status.IsSuccess() {
			continue
		}
		status := f.RunPreScorePlugins(ctx, state, role.Pod, q.nodes)
		var scores []fwk.NodePluginScores
		if status.IsSuccess() {
			scores, status = f.RunScorePlugins(ctx, state, role.Pod, q.nodes)
		}
		if !status.IsSuccess() {
			klog.FromContext(ctx).V(4).Info("Cannot score nodes for a gang; it is planned without", "role", role.Name, "reason", status.Message())
			return nil
		}
		for _, node := range scores {
			for _, s := range node.Scores {
				if slices.Contains(preferencePlugins, s.Name) {
					sum[node.Name] += s.Score * int64(role.Count)
				}
			}
		}
	}
	return func(n *corev1.Node) int64 { return sum[n.Name] }
}

// scored is the node of a role that is only scored: any.
func scored() plannedNode {
	return plannedNode{name: "*", of: &plan{verdict: verdict{onSnapshot: true}}, inTurn: true}
}
