// Package crd holds the custom resources that a sandbox serves: the Training
// Operator's, as its release ships them but without descriptions, and the group
// of another scheduler for which the operator can be set up.
package crd

import _ "embed"

//go:generate go run ./generate

// TFJobs returns the CustomResourceDefinition of kubeflow.org/v1 TFJobs.
func TFJobs() []byte { return tfjobs }

// VolcanoPodGroups returns the CustomResourceDefinition of
// scheduling.volcano.sh/v1beta1 PodGroups, as far as operators and schedulers
// use them.
func VolcanoPodGroups() []byte { return volcanoPodGroups }

//go:embed tfjobs.yaml
var tfjobs []byte

//go:embed volcano-podgroups.yaml
var volcanoPodGroups []byte
