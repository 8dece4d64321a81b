package top

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

const (
	// measuredBudget is how long the metrics API may take: what is measured is an extra, and no reason to wait.
	measuredBudget = 2 * time.Second
	// measuredEvery is how often a view that is kept up to date queries metrics: metrics-server looks no more often itself.
	measuredEvery = 15 * time.Second
)

// amounts are CPU and memory as metrics.k8s.io/v1beta1 has them.
type amounts struct {
	CPU    resource.Quantity `json:"cpu"`
	Memory resource.Quantity `json:"memory"`
}

// metrics is a NodeMetricsList or a PodMetricsList, as far as it is read.
type metrics struct {
	Items []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		// Usage is that of a node, Containers are those of a pod.
		Usage      amounts `json:"usage"`
		Containers []struct {
			Usage amounts `json:"usage"`
		} `json:"containers"`
	} `json:"items"`
}

// gauge knows what nodes or pods really use, where the cluster serves metrics.k8s.io.
type gauge struct {
	client *kube.Client
	// what is nodes or pods, those of namespace, or of all.
	what, namespace string

	readAt time.Time
	// used is by the name of a node, or by NAMESPACE/NAME of a pod; nil where nothing is measured.
	used map[string]usage.Measured
	// trouble is why it is not known in a cluster that serves it, as sentences.
	trouble string
}

// read queries metrics, unless it has done so not long ago. A cluster that does not serve metrics.k8s.io has none.
func (g *gauge) read(ctx context.Context, now time.Time) {
	if g.client == nil || !g.readAt.IsZero() && now.Sub(g.readAt) < measuredEvery {
		return
	}
	g.readAt, g.used, g.trouble = now, nil, ""
	ctx, cancel := context.WithTimeout(ctx, measuredBudget)
	defer cancel()
	gvr := schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: g.what}
	op := failure.Op{Verb: "list", Resource: gvr, Kind: map[string]string{"nodes": "NodeMetric", "pods": "PodMetric"}[g.what], Namespace: g.namespace}
	at := []string{"/apis", gvr.Group, gvr.Version}
	if g.namespace != "" {
		at = append(at, "namespaces", g.namespace)
	}
	result := g.client.Typed.Discovery().RESTClient().Get().AbsPath(path.Join(append(at, g.what)...)).Do(ctx)
	if err := result.Error(); apierrors.IsNotFound(err) {
		return
	} else if err != nil {
		g.trouble = failure.From(op.Wrap(err)).Message
		return
	}
	var list metrics
	raw, err := result.Raw()
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		g.trouble = fmt.Sprintf("%s: %v", op, err)
		return
	}
	g.used = list.byName()
}

// byName adds up the containers of pods.
func (list metrics) byName() map[string]usage.Measured {
	used := make(map[string]usage.Measured, len(list.Items))
	for _, m := range list.Items {
		name := m.Metadata.Name
		if m.Metadata.Namespace != "" {
			name = m.Metadata.Namespace + "/" + name
		}
		sum := usage.Measured{CPU: m.Usage.CPU.MilliValue(), Memory: m.Usage.Memory.Value()}
		for _, c := range m.Containers {
			sum.CPU, sum.Memory = sum.CPU+c.Usage.CPU.MilliValue(), sum.Memory+c.Usage.Memory.Value()
		}
		used[name] = sum
	}
	return used
}

// note reports what is missing, or nothing.
func (g *gauge) note() string {
	if g.trouble == "" {
		return ""
	}
	return "note: what " + g.what + " really use is not shown: " + g.trouble
}
