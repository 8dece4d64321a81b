package preemption

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
)

// newTrees returns the engine's own preemption, which frees nodes for composite groups: a search for room of ours knows one gang at a time. It is nil
// where the engine knows none.
func newTrees(ctx context.Context, handle fwk.Handle) (fwk.PodGroupPostFilterPlugin, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup) {
		return nil, nil
	}
	var args runtime.Object = &schedulerconfig.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
	plugin, err := frameworkplugins.NewInTreeRegistry()[Replaces](ctx, args, handle)
	if err != nil {
		return nil, fmt.Errorf("preemption for composite groups: %w", err)
	}
	trees, ok := plugin.(fwk.PodGroupPostFilterPlugin)
	if !ok {
		return nil, fmt.Errorf("preemption for composite groups: %T frees no nodes for groups", plugin)
	}
	return trees, nil
}
