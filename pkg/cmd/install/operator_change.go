package install

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/setup/operator"
	roles "github.com/gangctl/gangctl/pkg/setup/rbac"
)

// gangRole is the name of the role and the binding, and the instance label, of the rights that an operator lacks for gangs.
const gangRole = "gangctl:training-operator:gangs"

// change has an operator that another tool installed make gangs, or reports why that need not be.
func (o *OperatorOptions) change(ctx context.Context, client *kube.Client, there operator.Operator) error {
	if len(o.OfNew) > 0 {
		return failure.Usagef("%s has no effect: Deployment %s, which gangctl did not install, runs the operator already", strings.Join(o.OfNew, ", "), there.Name()).
			WithHint("leave it out; the operator that is there is changed with --gang-scheduler only")
	}
	if o.Release != "" {
		release, err := operator.ParseRelease(o.Release)
		if err != nil {
			return err
		}
		there.Release = release
	}
	fmt.Fprintf(o.IO.ErrOut, "Deployment %s runs a training operator %s, and %s\n", there.Name(), there.Release, describe(there.Mode()))
	if o.Settings.GangScheduler == "" {
		fmt.Fprintln(o.IO.ErrOut, "it is left alone: gangctl submit makes the gang of each job itself, so nothing has to be changed")
		return nil
	}
	flags, err := there.Flags(o.Settings.GangScheduler)
	if err != nil {
		return failure.Errorf("%w", err).WithHint("leave it alone: submit makes the gang of each job itself; or give its release: --release 1.8")
	}
	if err := served(ctx, client, there.Render(o.Settings.GangScheduler).Group); err != nil {
		return err
	}
	rights, err := o.missingRights(ctx, client, there)
	if err != nil {
		return err
	}
	changed := there.WithGangs(flags)
	flagged := there.Same(changed)
	if flagged && len(rights) == 0 {
		fmt.Fprintln(o.IO.ErrOut, "nothing has to be changed")
		return nil
	}
	if err := o.show(there.Deployment, changed, rights); err != nil {
		return err
	}
	fmt.Fprintf(o.IO.ErrOut, "from then on every job that the operator handles, in all namespaces, is a gang of scheduler %s, unless it names another; gangctl submit needs none of this\n", o.Settings.GangScheduler)
	if o.Flags.diff {
		return nil
	}
	if err := o.consent(there); err != nil {
		return err
	}
	return o.carryOut(ctx, client, there, changed, rights)
}

func describe(m operator.Mode) string {
	switch {
	case !m.On:
		return "leaves gangs to others"
	case m.Scheduler == "":
		return "makes gangs of " + m.Group
	}
	return fmt.Sprintf("makes gangs of %s for scheduler %s", m.Group, m.Scheduler)
}

// missingRights are a role and its binding with what the operator lacks; none if it lacks nothing. They are objects of their own:
// its own role is overwritten by its next upgrade.
func (o *OperatorOptions) missingRights(ctx context.Context, client *kube.Client, there operator.Operator) ([]*unstructured.Unstructured, error) {
	policy, err := clusterPolicy(ctx, client)
	if err != nil {
		return nil, err
	}
	need := operator.GangNeed(there.Render(o.Settings.GangScheduler).Group)
	missing := roles.Missing(policy.Rules(there.Account(), ""), need.Rules)
	if len(missing) == 0 {
		return nil, nil
	}
	if role := policy.ClusterRole(gangRole); role != nil { // what an earlier run granted stays granted
		missing = roles.Compact(append(missing, role.Rules...))
	}
	var objects []*unstructured.Unstructured
	for _, object := range roles.Objects(gangRole, there.Account().Subject(), "", missing) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, err
		}
		u := &unstructured.Unstructured{Object: content}
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		u.SetLabels(map[string]string{install.LabelPartOf: install.PartOf, install.LabelManagedBy: install.PartOf})
		objects = append(objects, u)
	}
	return objects, nil
}

// clusterPolicy reads who may do what in the whole cluster.
func clusterPolicy(ctx context.Context, client *kube.Client) (*roles.Policy, error) {
	policy, rbac := &roles.Policy{}, client.Typed.RbacV1()
	clusterRoles, err := paging.All(ctx, metav1.ListOptions{}, rbac.ClusterRoles().List)
	if err != nil {
		return nil, failure.Op{Verb: "list", Resource: rbacv1.SchemeGroupVersion.WithResource("clusterroles"), Kind: "ClusterRole"}.Wrap(err)
	}
	for _, page := range clusterRoles {
		for i := range page.Items {
			policy.ClusterRoles = append(policy.ClusterRoles, &page.Items[i])
		}
	}
	bindings, err := paging.All(ctx, metav1.ListOptions{}, rbac.ClusterRoleBindings().List)
	if err != nil {
		return nil, failure.Op{Verb: "list", Resource: rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"), Kind: "ClusterRoleBinding"}.Wrap(err)
	}
	for _, page := range bindings {
		for i := range page.Items {
			policy.ClusterRoleBindings = append(policy.ClusterRoleBindings, &page.Items[i])
		}
	}
	return policy, nil
}

// show prints what would change as a diff.
func (o *OperatorOptions) show(before, after *appsv1.Deployment, rights []*unstructured.Unstructured) error {
	results := []apply.Result{}
	for _, object := range rights {
		results = append(results, apply.Result{Object: object, After: object})
	}
	was, err := untyped(before)
	if err != nil {
		return err
	}
	is, err := untyped(after)
	if err != nil {
		return err
	}
	for _, r := range append(results, apply.Result{Object: is, Before: was, After: is}) {
		diff, err := r.Diff()
		if err != nil {
			return err
		}
		fmt.Fprint(o.IO.Out, diff)
	}
	return nil
}

func untyped(d *appsv1.Deployment) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	return u, nil
}

func (o *OperatorOptions) consent(there operator.Operator) error {
	if o.Yes || o.Flags.dryRun == dryRunServer {
		return nil
	}
	if !o.Prompter.Available() {
		return failure.Errorf("Deployment %s is not managed by gangctl; cannot prompt: stdin and stderr must be terminals", there.Name()).WithHint("to confirm: --yes")
	}
	yes, err := o.Prompter.Confirm(fmt.Sprintf("Change Deployment %s?", there.Name()))
	if err != nil {
		return err
	}
	if !yes {
		return failure.Errorf("nothing was changed")
	}
	return nil
}

// carryOut grants the rights first: the operator restarts with the flag.
func (o *OperatorOptions) carryOut(ctx context.Context, client *kube.Client, there operator.Operator, changed *appsv1.Deployment, rights []*unstructured.Unstructured) error {
	i := &Installer{IO: o.IO, Client: client, Flags: &o.Flags, counts: map[apply.Action]int{}}
	a := &apply.Applier{Client: client.Dynamic, Force: o.Flags.force, DryRun: i.dry(), Report: i.report}
	if err := a.Apply(ctx, rights); err != nil {
		return err
	}
	if there.Same(changed) {
		return i.err
	}
	c := changed.Spec.Template.Spec.Containers[there.Index]
	at := fmt.Sprintf("/spec/template/spec/containers/%d/", there.Index)
	// Whoever changed the Deployment meanwhile has changed what was shown: with another version it is a conflict.
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/resourceVersion", "value": there.Deployment.ResourceVersion},
		{"op": "add", "path": at + "command", "value": c.Command},
		{"op": "add", "path": at + "args", "value": c.Args},
	})
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: apply.FieldManager}
	if i.dry() {
		options.DryRun = []string{metav1.DryRunAll}
	}
	namespace, name := there.Deployment.Namespace, there.Deployment.Name
	if _, err := client.Typed.AppsV1().Deployments(namespace).Patch(ctx, name, types.JSONPatchType, patch, options); err != nil {
		return failure.Op{Verb: "patch", Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment", Namespace: namespace, Name: name}.Wrap(err)
	}
	fmt.Fprintf(o.IO.Out, "deployment.apps/%s %s%s\n", name, apply.Configured, i.suffix())
	if i.dry() || !o.Flags.wait {
		return i.err
	}
	return o.await(ctx, client, namespace, name)
}
