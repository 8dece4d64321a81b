// Package crd holds the custom resources of the Training Operator that a sandbox
// serves, as the operator's release ships them but without descriptions.
package crd

import _ "embed"

//go:generate go run ./generate

// TFJobs returns the CustomResourceDefinition of kubeflow.org/v1 TFJobs.
func TFJobs() []byte { return tfjobs }

//go:embed tfjobs.yaml
var tfjobs []byte
