package kubeflow

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Group is the API group of the Training Operator.
const Group = "kubeflow.org"

// Reader reads jobs of the layout: short is what people type for the kind, and before are the labels by which the operators of that kind alone named
// the job of a pod, newest first.
func (l Layout) Reader(kind, short string, before ...string) gang.JobReader {
	one := strings.ToLower(kind)
	return gang.JobReader{
		GroupKind: schema.GroupKind{Group: Group, Kind: kind}, Resource: one + "s", Versions: []string{"v1"}, Names: []string{one, one + "s", short},
		Read:       func(u *unstructured.Unstructured) (gang.Job, error) { return Read(u, l) },
		NameLabels: NameLabels(before...), RoleIndexOf: RoleIndexOf, Labels: Labels, PodName: PodName, Template: l.Template, Policy: Policy(),
		RoleNames: l.Roles, Container: l.Container, Controller: Operator(), OmitsEmpty: true,
	}
}

// Further are the kinds about which only their layout is special. A master of an XGBoostJob and of a PaddleJob coordinates the workers, or serves them.
func Further() []gang.JobReader {
	roles := []string{"Master", "Worker"}
	xgboost := Layout{Specs: "xgbReplicaSpecs", Container: "xgboost", Roles: roles}.Reader("XGBoostJob", "xgboost")
	xgboost.FailsWithMember = true
	return []gang.JobReader{
		xgboost,
		Layout{Specs: "paddleReplicaSpecs", Container: "paddle", Roles: roles}.Reader("PaddleJob", "paddle"),
		Layout{Specs: "jaxReplicaSpecs", Container: "jax", Roles: roles[1:]}.Reader("JAXJob", "jax"),
	}
}
