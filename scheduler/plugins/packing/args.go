package packing

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
)

// Name is the name of the plugin in a configuration file.
const Name = "GangScore"

// Weight is how much the plugin counts unless a configuration says otherwise: more than the engine's preference for empty nodes,
// no more than what users prefer.
const Weight = 2

// Args are the arguments of the plugin GangScore.
type Args struct {
	// Accelerators are the names of the resources that are scarce, such as nvidia.com/gpu. By default these are all extended
	// resources.
	Accelerators []string `json:"accelerators,omitempty"`
}

func (a Args) validate() error {
	for i, name := range a.Accelerators {
		if !v1helper.IsExtendedResourceName(corev1.ResourceName(name)) {
			return fmt.Errorf("args.accelerators[%d]: %q is not the name of an extended resource, such as nvidia.com/gpu", i, name)
		}
		if slices.Contains(a.Accelerators[:i], name) {
			return fmt.Errorf("args.accelerators[%d]: %q is there twice", i, name)
		}
	}
	return nil
}

// accelerator tells whether a resource is scarce.
func (a Args) accelerator(name corev1.ResourceName) bool {
	if len(a.Accelerators) > 0 {
		return slices.Contains(a.Accelerators, string(name))
	}
	return v1helper.IsExtendedResourceName(name)
}
