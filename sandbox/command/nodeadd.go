package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cli/failure"

	"github.com/gangctl/gangctl/sandbox/node"
)

type nodeAddOptions struct {
	*nodeEnv

	name        string
	count       int
	cpu, memory string
	gpus        int64
	labels      []string
	taints      []string
}

func newNodeAdd(n *nodeEnv) *cobra.Command {
	o := &nodeAddOptions{nodeEnv: n}
	cmd := &cobra.Command{
		Use:   "add [NAME]",
		Short: "Add nodes",
		Long:  "Add nodes. Sizes that are not given are those of `up`.",
		Example: `  gangctl-sandbox node add --count 4 --gpus 8
  gangctl-sandbox node add gpu-1 --gpus 8 --label pool=gpu --taint nvidia.com/gpu=present:NoSchedule`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return failure.Usagef("node add takes one name at most, got %q", args).WithHint("use --count to add several nodes")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.name = args[0]
			}
			return o.run(cmd.Context(), cmd.Flags().Changed("gpus"))
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.count, "count", 1, "number of nodes to add")
	f.StringVar(&o.cpu, "cpu", "", "CPUs of each node (default: as up)")
	f.StringVar(&o.memory, "memory", "", "memory of each node (default: as up)")
	f.Int64Var(&o.gpus, "gpus", 0, "GPUs of each node (default: as up)")
	f.StringArrayVar(&o.labels, "label", nil, "label of each node, key=value; repeatable")
	f.StringArrayVar(&o.taints, "taint", nil, "taint of each node, key=value:Effect; repeatable")
	return cmd
}

func (o *nodeAddOptions) run(ctx context.Context, ownGPUs bool) error {
	if o.gpus < 0 {
		return failure.Usagef("--gpus %d: must not be negative", o.gpus)
	}
	if o.count < 1 {
		return failure.Usagef("--count %d: must be 1 or more", o.count)
	}
	if o.name != "" && o.count > 1 {
		return failure.Usagef("%d nodes cannot all be called %s", o.count, o.name).WithHint("leave out the name: they are numbered")
	}
	labels, err := parseLabels(o.labels)
	if err != nil {
		return err
	}
	taints, err := parseTaints(o.taints)
	if err != nil {
		return err
	}
	changer, settings, err := o.changer()
	if err != nil {
		return err
	}
	shape := node.ShapeOf(settings)
	shape.Labels, shape.Taints = labels, taints
	for _, q := range []struct {
		flag, text string
		to         *resource.Quantity
	}{{"cpu", o.cpu, &shape.CPU}, {"memory", o.memory, &shape.Memory}} {
		if q.text == "" {
			continue
		}
		if *q.to, err = resource.ParseQuantity(q.text); err != nil {
			return failure.Usagef("--%s %q: %w", q.flag, q.text, err)
		}
	}
	if ownGPUs {
		shape.GPUs = o.gpus
	}
	names, err := changer.Add(ctx, o.name, o.count, shape)
	for _, name := range names {
		fmt.Fprintf(o.IO.Out, "node/%s added\n", name)
	}
	return err
}

func parseLabels(texts []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, failure.Usagef("--label %q: must be key=value", text)
		}
		out[key] = value
	}
	return out, nil
}

func parseTaints(texts []string) ([]corev1.Taint, error) {
	var out []corev1.Taint
	for _, text := range texts {
		rest, effect, ok := strings.Cut(text, ":")
		key, value, _ := strings.Cut(rest, "=")
		switch corev1.TaintEffect(effect) {
		case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
		default:
			ok = false
		}
		if !ok || key == "" {
			return nil, failure.Usagef("--taint %q: must be key=value:Effect, with effect NoSchedule, PreferNoSchedule or NoExecute", text)
		}
		out = append(out, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return out, nil
}
