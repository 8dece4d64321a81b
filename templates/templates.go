// Package templates holds the job presets that are built into gangctl: plain YAML objects that flags are laid over.
package templates

import _ "embed"

//go:embed tf.yaml
var tf []byte

// TF is the preset of `gangctl submit tf`: a TFJob (kubeflow.org/v1) in YAML with every role that the command knows.
func TF() []byte { return tf }
