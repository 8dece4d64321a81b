// Package crd holds the custom resources that a sandbox serves besides those
// that gangctl installs: the group of another scheduler for which the operator
// can be set up.
package crd

import _ "embed"

// VolcanoPodGroups returns the CustomResourceDefinition of
// scheduling.volcano.sh/v1beta1 PodGroups, as far as operators and schedulers
// use them.
func VolcanoPodGroups() []byte { return volcanoPodGroups }

//go:embed volcano-podgroups.yaml
var volcanoPodGroups []byte
