package setting

import (
	"fmt"
	"strings"
)

// Diff lists the flags in which b differs from a, as `--nodes 8 (running: 4)`;
// it is empty when b asks for what a is. A port of 0 asks for nothing.
func Diff(a, b Settings) string {
	var out []string
	compare := func(flag string, have, want any) {
		if have != want {
			out = append(out, fmt.Sprintf("--%s %v (running: %v)", flag, want, have))
		}
	}
	compare("nodes", a.Nodes, b.Nodes)
	compare("cpu", a.CPU.String(), b.CPU.String())
	compare("memory", a.Memory.String(), b.Memory.String())
	compare("gpus", a.GPUs, b.GPUs)
	compare("gpu-resource", a.GPUResource, b.GPUResource)
	compare("node-file", a.NodeFile, b.NodeFile)
	compare("scheduler", a.Scheduler, b.Scheduler)
	compare("serve", a.Serve, b.Serve)
	compare("native-gangs", a.NativeGangs, b.NativeGangs)
	compare("operator", a.Operator, b.Operator)
	compare("operator-gang-scheduler", a.OperatorGangScheduler, b.OperatorGangScheduler)
	compare("run-image", a.RunImage, b.RunImage)
	compare("kubeconfig", a.Kubeconfig, b.Kubeconfig)
	if b.Port != 0 {
		compare("port", a.Port, b.Port)
	}
	compare("run-for", a.RunFor, b.RunFor)
	compare("fail-rate", a.FailRate, b.FailRate)
	return strings.Join(out, ", ")
}
