package noderule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// injector is who has the pods of a job require labels of nodes that the job does not require.
type injector struct {
	// name reads like: MutatingAdmissionPolicy pin-gold; a webhook or a policy of admission, where it is not known which.
	name string
	// show is the command that shows it.
	show string
}

// isInjected reports whether the pods of a role require a label that their template does not.
func isInjected(c *stage.Context, role placement.Role, w Requirement) bool {
	spec := c.View.Injected(c.Gang, c.Request.Member(role.Name, 0).Role)
	return spec != nil && slices.ContainsFunc(Requirements(*spec), w.Same)
}

// injectorOf is who has pods in the namespace of the gang require a label.
func injectorOf(c *stage.Context, w Requirement) injector {
	namespace := c.Gang.Meta.Namespace
	for _, of := range c.View.SelectorsOfNamespace(namespace) {
		if len(w.Values) == 1 && of.Labels[w.Key] == w.Values[0] {
			return injector{fmt.Sprintf("annotation %s of namespace %s", of.Annotation, namespace), command.Kubectl("", "get", "namespace", namespace, "-o", "yaml")}
		}
	}
	for _, kind := range policyKinds() {
		for _, u := range c.View.Snap.Custom[kind] {
			if in := u.GetNamespace(); (in == "" || in == namespace) && names(u, w) {
				return injector{kind.Kind + " " + u.GetName(), command.Kubectl(in, "describe", strings.ToLower(kind.Kind)+"."+kind.Group, u.GetName())}
			}
		}
	}
	return injector{"a webhook or a policy of admission", "kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies"}
}

// policyKinds are the kinds of objects by which the API server, Kyverno and Gatekeeper change what is created. They are not collected: a file may have them.
func policyKinds() []schema.GroupKind {
	return []schema.GroupKind{
		{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"},
		{Group: "policies.kyverno.io", Kind: "MutatingPolicy"}, {Group: "policies.kyverno.io", Kind: "NamespacedMutatingPolicy"},
		{Group: "kyverno.io", Kind: "ClusterPolicy"}, {Group: "kyverno.io", Kind: "Policy"},
		{Group: "mutations.gatekeeper.sh", Kind: "Assign"}, {Group: "mutations.gatekeeper.sh", Kind: "ModifySet"},
	}
}

// names reports whether a policy has a label and a value of it in its spec, in whatever language that is written.
func names(policy *unstructured.Unstructured, w Requirement) bool {
	text, err := json.Marshal(policy.Object["spec"])
	if err != nil || !strings.Contains(string(text), w.Key) {
		return false
	}
	return len(w.Values) == 0 || slices.ContainsFunc(w.Values, func(v string) bool { return strings.Contains(string(text), v) })
}

// ofInjector makes a finding that no node has a label one about who puts the rule into the pods: the job has none.
func ofInjector(c *stage.Context, f *stage.Finding, w Requirement, have []string) *stage.Finding {
	by := injectorOf(c, w)
	f.As(answer.Blocked, answer.Admin).Message += fmt.Sprintf(", and the job itself has no such rule: %s puts it into its pods", by.name)
	if len(have) > 0 {
		f.Detail("nodes have %s: %s", w.Key, phrase.Names(have))
	} else {
		f.Detail("no node has a label %s at all", w.Key)
	}
	return f.Fact("injectedBy", by.name).Detail("label the nodes that these pods may use, or have it put no such rule into pods of namespace %s", c.Gang.Meta.Namespace).Run(by.show)
}

// Injected adds to what keeps members from a place which of the rules that it names are not the job's.
func Injected(c *stage.Context, out *stage.Result, from int) {
	if len(out.Findings) == from {
		return
	}
	f := &out.Findings[from]
	var lines []string
	for _, role := range c.Request.Roles {
		for _, w := range Requirements(role.Pod.Spec) {
			if !strings.Contains(f.Message, w.Key) || !isInjected(c, role, w) || f.Facts["injectedBy"] != nil {
				continue
			}
			by := injectorOf(c, w)
			if line := fmt.Sprintf("the job itself does not require %s: %s puts it into its pods", w, by.name); !slices.Contains(lines, line) {
				lines = append(lines, line)
				f.Run(by.show)
			}
		}
	}
	if len(lines) > 0 {
		stage.DetailEach(f, lines, func(line string) string { return line }).Fact("injectedBy", lines)
	}
}
