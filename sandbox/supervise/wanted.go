package supervise

import (
	"fmt"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/sandbox/node"
	"github.com/gangctl/gangctl/sandbox/setting"
)

// Wanted returns the nodes that settings ask for.
func Wanted(s setting.Settings, m node.Machine, now time.Time) ([]*corev1.Node, error) {
	if s.NodeFile != "" {
		return m.Read(s.NodeFile, now)
	}
	var out []*corev1.Node
	for i := range s.Nodes {
		out = append(out, m.New(fmt.Sprintf("node-%d", i+1), node.ShapeOf(s), now))
	}
	return out, nil
}

// Machine is what the nodes of a sandbox with these ports are like.
func Machine(ports map[string]int) node.Machine {
	return node.Machine{KubeletPort: ports[portKubelet], KubernetesVersion: KubernetesVersion()}
}

// KubernetesVersion is the release of Kubernetes that is linked in.
func KubernetesVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == "k8s.io/kubernetes" {
				return dep.Version
			}
		}
	}
	return "v0.0.0"
}
