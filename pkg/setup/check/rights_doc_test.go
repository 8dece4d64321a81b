package check

import (
	"fmt"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/install/operator"
	"github.com/gangctl/gangctl/internal/golden"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// TestRightsDocument compares the trees in docs/rights.md with the manifests: who reads it must be able to rely on it.
func TestRightsDocument(t *testing.T) {
	const path = "../../../docs/rights.md"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := install.Scheduler{Version: "v0", Namespace: install.DefaultNamespace, Image: "x", Replicas: 1, TakeBack: true}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	training, err := operator.Operator{Namespace: operator.DefaultNamespace, Kinds: operator.Kinds()[:1]}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, objects := range map[string][]*unstructured.Unstructured{"scheduler": scheduler, "operator": training} {
		begin, end := "<!-- tree of the "+name+" -->\n```\n", "```\n<!-- end -->"
		head, rest, ok := strings.Cut(text, begin)
		got, tail, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s has no tree of the %s", path, name)
		}
		want := tree(objects)
		if got != want && !golden.Update() {
			t.Errorf("the tree of the %s is not that of the manifests (go test ./pkg/setup/check -run RightsDocument -update); they say\n%s", name, want)
		}
		text = head + begin + want + end + tail
	}
	if golden.Update() {
		golden.Write(t, path, text)
	}
}

// tree draws what each account is granted, by role.
func tree(objects []*unstructured.Unstructured) string {
	rules := map[string][]rbacv1.PolicyRule{}
	var bindings []*unstructured.Unstructured
	account := ""
	for _, o := range objects {
		switch o.GetKind() {
		case "ClusterRole", "Role":
			rules[o.GetKind()+" "+o.GetName()], _ = rbac.RulesOf(o)
		case "ClusterRoleBinding", "RoleBinding":
			bindings = append(bindings, o)
		case "ServiceAccount":
			account = o.GetNamespace() + "/" + o.GetName()
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "ServiceAccount %s\n", account)
	for i, o := range bindings {
		branch, indent := "├─ ", "│  "
		if i == len(bindings)-1 {
			branch, indent = "└─ ", "   "
		}
		ref := typed[rbacv1.RoleBinding](o).RoleRef
		where := ""
		if o.GetNamespace() != "" {
			where = " in namespace " + o.GetNamespace()
		}
		own, shipped := rules[ref.Kind+" "+ref.Name]
		if !shipped {
			where += " (Kubernetes' own)"
		}
		fmt.Fprintf(&b, "%s%s %s%s\n", branch, ref.Kind, ref.Name, where)
		own = rbac.Compact(own)
		for j, r := range own {
			twig := "├─ "
			if j == len(own)-1 {
				twig = "└─ "
			}
			fmt.Fprintf(&b, "%s%s%s\n", indent, twig, rbac.String(r))
		}
	}
	for _, o := range objects {
		if o.GetKind() == "ValidatingAdmissionPolicy" {
			drawLimits(&b, typed[admissionv1.ValidatingAdmissionPolicy](o))
		}
	}
	return b.String()
}

// drawLimits draws what a policy takes of rights.
func drawLimits(b *strings.Builder, p *admissionv1.ValidatingAdmissionPolicy) {
	var resources []string
	for _, r := range p.Spec.MatchConstraints.ResourceRules {
		for _, name := range r.Resources {
			resources = append(resources, name+"."+r.APIGroups[0])
		}
	}
	fmt.Fprintf(b, "   limited by ValidatingAdmissionPolicy %s, for %s:\n", p.Name, strings.Join(resources, ", "))
	for _, v := range p.Spec.Validations {
		fmt.Fprintf(b, "   - %s\n", v.Message)
	}
}
