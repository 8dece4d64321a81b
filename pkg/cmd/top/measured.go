package top

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/failure"
	"github.com/gangctl/gangctl/pkg/kube"
	"github.com/gangctl/gangctl/pkg/usage"
)

// measuredBudget is how long the metrics API may take: what is measured is an extra, and no reason to wait.
const measuredBudget = 2 * time.Second

// nodeMetrics is a NodeMetricsList of metrics.k8s.io/v1beta1, as far as it is read.
type nodeMetrics struct {
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Usage    struct {
			CPU    resource.Quantity `json:"cpu"`
			Memory resource.Quantity `json:"memory"`
		} `json:"usage"`
	} `json:"items"`
}

// measure fills in what nodes really use, where the cluster serves metrics.k8s.io. A cluster without it has nothing to say; why
// another one does not say it is returned in words.
func measure(ctx context.Context, client *kube.Client, nodes []usage.Node) (trouble string) {
	ctx, cancel := context.WithTimeout(ctx, measuredBudget)
	defer cancel()
	op := failure.Op{Verb: "list", Resource: schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "nodes"}, Kind: "NodeMetric"}
	result := client.Typed.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/nodes").Do(ctx)
	if err := result.Error(); apierrors.IsNotFound(err) {
		return ""
	} else if err != nil {
		return failure.From(op.Wrap(err)).Message
	}
	var list nodeMetrics
	raw, err := result.Raw()
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return fmt.Sprintf("%s: %v", op, err)
	}
	byName := make(map[string]*usage.Measured, len(list.Items))
	for _, m := range list.Items {
		byName[m.Metadata.Name] = &usage.Measured{CPU: m.Usage.CPU.MilliValue(), Memory: m.Usage.Memory.Value()}
	}
	for i := range nodes {
		nodes[i].Measured = byName[nodes[i].Name]
	}
	return ""
}
