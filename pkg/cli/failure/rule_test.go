package failure

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// One request to an administrator is enough: the hint has the rules of all refusals, and of what the command needs further.
func TestRules(t *testing.T) {
	list := func(group, resource, namespace string) Op {
		return Op{Verb: "list", Resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, Kind: resource, Namespace: namespace}
	}
	refused := func(op Op) error {
		message := errors.New(`User "bob" cannot list resource "` + op.Resource.Resource + `"`)
		return op.Wrap(apierrors.NewForbidden(op.Resource.GroupResource(), "", message))
	}
	tf, mpi, pods, nodes := list("kubeflow.org", "tfjobs", "a"), list("kubeflow.org", "mpijobs", "a"), list("", "pods", "a"), list("", "nodes", "")
	const rules = `ask an administrator for these rules in a Role in namespace a, bound to user "bob":
  - apiGroups: ["kubeflow.org"]
    resources: ["tfjobs", "mpijobs"]
    verbs: ["list"]
  - apiGroups: [""]
    resources: ["pods"]
    verbs: ["list"]
and for this rule in a ClusterRole, bound to user "bob":
  - apiGroups: [""]
    resources: ["nodes"]
    verbs: ["list"]`
	for name, err := range map[string]error{
		"needed":  Needing(refused(tf), mpi, tf, pods, nodes, Op{}),
		"refused": All(refused(tf), refused(mpi), refused(pods), refused(nodes)),
		"both":    Needing(All(refused(tf), refused(mpi)), pods, nodes),
		"denied":  All(Denied(tf, `User "bob" cannot list resource "tfjobs"`), Denied(mpi, "forbidden"), Denied(pods, "forbidden"), Denied(nodes, "forbidden")),
	} {
		if got := From(err); got.Hint != rules {
			t.Errorf("%s: got %s", name, got.Hint)
		}
	}
	for _, other := range []error{nil, errors.New("no"), Errorf("no").WithHint("look"), From(refused(tf)).WithHint("look")} {
		if got := Needing(other, pods); !errors.Is(got, other) {
			t.Errorf("got %v for %v", got, other)
		}
	}
	if got := From(NeedingVerb(refused(nodes), "delete")).Hint; !strings.Contains(got, `verbs: ["list"]`) || !strings.Contains(got, `verbs: ["delete"]`) || NeedingVerb(nil, "delete") != nil {
		t.Errorf("got %s", got)
	}
	if got := Denied(nodes, "no").Error(); got != "list nodes in all namespaces: no" {
		t.Errorf("got %q", got)
	}
}
