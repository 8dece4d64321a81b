// Package install holds the manifests that gangctl puts on a cluster, one file
// a concern, as plain YAML, and what of them can be set.
package install

import (
	"bytes"
	_ "embed"
)

// PodGroupCRD returns the CustomResourceDefinition of scheduling.x-k8s.io/v1alpha1
// PodGroups, the object that training operators already know how to create.
func PodGroupCRD() []byte { return podGroupCRD }

// SchedulerRBAC returns the namespace, the service account and exactly the
// rights that the bundled scheduler uses.
func SchedulerRBAC() []byte { return join(namespace, serviceAccount, schedulerRBAC) }

// SchedulerPolicyRBAC returns the further rights with which the bundled scheduler
// can take the places of gangs back that stay below their minimum, and what limits
// them to that.
func SchedulerPolicyRBAC() []byte { return join(schedulerPolicyAdmission, schedulerPolicyRBAC) }

// join makes one stream of documents.
func join(documents ...[]byte) []byte { return bytes.Join(documents, []byte("---\n")) }

//go:embed crd-podgroup.yaml
var podGroupCRD []byte

//go:embed namespace.yaml
var namespace []byte

//go:embed serviceaccount.yaml
var serviceAccount []byte

//go:embed scheduler-rbac.yaml
var schedulerRBAC []byte

//go:embed scheduler-policy-rbac.yaml
var schedulerPolicyRBAC []byte

//go:embed scheduler-policy-admission.yaml
var schedulerPolicyAdmission []byte

//go:embed user-roles.yaml
var userRoles []byte

//go:embed config.yaml
var config []byte

//go:embed priorityclass.yaml
var priorityClass []byte

//go:embed deployment.yaml
var deployment []byte

//go:embed service.yaml
var service []byte

//go:embed poddisruptionbudget.yaml
var podDisruptionBudget []byte

//go:embed networkpolicy.yaml
var networkPolicy []byte
