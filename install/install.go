// Package install holds the manifests that gangctl puts on a cluster, one file
// a concern, as plain YAML.
package install

import _ "embed"

// PodGroupCRD returns the CustomResourceDefinition of scheduling.x-k8s.io/v1alpha1
// PodGroups, the object that training operators already know how to create.
func PodGroupCRD() []byte { return podGroupCRD }

// SchedulerRBAC returns the namespace, the service account and exactly the
// rights that the bundled scheduler uses.
func SchedulerRBAC() []byte { return schedulerRBAC }

// SchedulerPolicyRBAC returns the further rights with which the bundled scheduler
// can take the places of gangs back that stay below their minimum.
func SchedulerPolicyRBAC() []byte { return schedulerPolicyRBAC }

//go:embed crd-podgroup.yaml
var podGroupCRD []byte

//go:embed scheduler-rbac.yaml
var schedulerRBAC []byte

//go:embed scheduler-policy-rbac.yaml
var schedulerPolicyRBAC []byte
