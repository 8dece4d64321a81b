package install

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/distribution/reference"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/install"
	manifests "github.com/gangctl/gangctl/install/operator"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/paging"
	"github.com/gangctl/gangctl/pkg/setup/operator"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

func (o *OperatorOptions) run(ctx context.Context) error {
	if o.Export {
		objects, err := o.Settings.Objects()
		if err != nil {
			return err
		}
		return printYAML(o.IO, objects)
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	there, err := findOperators(ctx, client, o.IO.ErrOut)
	if err != nil {
		return err
	}
	found, own := there.ofTFJobs, there.own
	switch {
	case len(found) > 1 && found[0].Stopped():
		return failure.Errorf("%d operators for TFJobs are there, and all are scaled to 0: %s and %s", len(found), found[0].Name(), found[1].Name()).
			WithHint("start the one to keep: kubectl -n %s scale deployment/%s --replicas=1", found[0].Deployment.Namespace, found[0].Deployment.Name)
	case len(found) > 1:
		return failure.Errorf("%d operators act on TFJobs: %s and %s", len(found), found[0].Name(), found[1].Name()).
			WithHint("keep one of them: kubectl -n %s scale deployment/%s --replicas=0", found[1].Deployment.Namespace, found[1].Deployment.Name)
	case len(found) == 1 && !manifests.Ours(found[0].Deployment):
		return o.change(ctx, client, found[0])
	case own != nil && own.Deployment.Namespace != o.Settings.Namespace:
		return failure.Errorf("gangctl installed the operator in namespace %s", own.Deployment.Namespace).
			WithHint("name that one: -n %s", own.Deployment.Namespace)
	}
	return o.install(ctx, client, own)
}

// operators are those that run as Deployments.
type operators struct {
	// ofTFJobs are those that handle TFJobs.
	ofTFJobs []operator.Operator
	// own is the one that gangctl installed, whatever kinds it handles; nil if it installed none.
	own *operator.Operator
}

// findOperators finds those that run as Deployments. Some that cannot be seen must not pass for none: two would act on the same
// jobs. Those that anybody may have made are named and left out: they would keep administrators from installing one, and be granted rights.
func findOperators(ctx context.Context, client *kube.Client, out io.Writer) (operators, error) {
	pages, err := paging.All(ctx, metav1.ListOptions{}, client.Typed.AppsV1().Deployments(metav1.NamespaceAll).List)
	if err != nil {
		return operators{}, failure.Op{Verb: "list", Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment"}.Wrap(err)
	}
	var all []*appsv1.Deployment
	for _, page := range pages {
		for i := range page.Items {
			all = append(all, &page.Items[i])
		}
	}
	found := operator.Find(all)
	if len(found) == 0 && !slices.ContainsFunc(all, manifests.Ours) {
		return operators{}, nil
	}
	policy, err := clusterPolicy(ctx, client)
	if err != nil {
		return operators{}, err
	}
	trusted, others := operator.Trusted(found, policy, manifests.DefaultNamespace)
	for _, other := range others {
		fmt.Fprintf(out, "note: Deployment %s looks like a training operator and is left alone: no ClusterRoleBinding lets its account act on the cluster's TFJobs\n", other.Name())
	}
	return operators{ofTFJobs: operator.Acting(trusted), own: ownAmong(all, policy)}, nil
}

// ownAmong is the operator among Deployments that gangctl installed; nil if there is none. Anybody may write its labels where they have a
// namespace: it counts where accounts act on all jobs of a kind that it could handle.
func ownAmong(all []*appsv1.Deployment, policy *rbac.Policy) *operator.Operator {
	var kinds []rbacv1.PolicyRule
	for _, kind := range manifests.Kinds() {
		kinds = append(kinds, rbacv1.PolicyRule{APIGroups: []string{"kubeflow.org"}, Resources: []string{kind}})
	}
	component := operator.Component([]string{manifests.DefaultNamespace}, kinds...)
	for _, d := range all {
		if o, ok := operator.Of(d); ok && manifests.Ours(d) && policy.Trusts(component, d.Namespace) {
			return &o
		}
	}
	return nil
}

// merged are the settings for an operator that gangctl installed before. Kinds are only added, as jobs live by it, and what was not typed stays.
func (o *OperatorOptions) merged(there operator.Operator) (manifests.Operator, error) {
	s := o.Settings
	s.Kinds = slices.DeleteFunc(manifests.Kinds(), func(kind string) bool { return !slices.Contains(o.Settings.Kinds, kind) && !there.Handles(kind) })
	if !o.Typed("image") {
		released, err := manifests.Image()
		if err != nil {
			return s, err
		}
		// The image of an earlier release is not one that was typed.
		if image := there.Container().Image; there.Deployment.Labels[install.LabelVersion] == manifests.Version || repository(image) != repository(released) {
			s.Image = image
		}
	}
	if !o.Typed("image-pull-secret") {
		for _, secret := range there.Deployment.Spec.Template.Spec.ImagePullSecrets {
			s.PullSecrets = append(s.PullSecrets, secret.Name)
		}
	}
	if !o.Typed("gang-scheduler") {
		s.GangScheduler = there.Mode().Scheduler
	}
	return s, nil
}

// repository is the name of an image without its tag and digest.
func repository(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return image
	}
	return named.Name()
}

// install applies the release's manifests. Nothing is pruned: with a definition, every job of its kind would go.
func (o *OperatorOptions) install(ctx context.Context, client *kube.Client, own *operator.Operator) error {
	if o.Release != "" {
		return failure.Usagef("--release is about an operator that is there, and there is none").WithHint("gangctl installs %s", manifests.Version)
	}
	settings := o.Settings
	if own != nil {
		var err error
		if settings, err = o.merged(*own); err != nil {
			return err
		}
	}
	objects, err := settings.Objects()
	if err != nil {
		return err
	}
	i := &Installer{IO: o.IO, Client: client, Flags: &o.Flags, counts: map[apply.Action]int{}}
	if own == nil && !o.Flags.force {
		webhook, err := webhookOfAnother(ctx, client, objects)
		if err != nil {
			return err
		}
		if webhook != nil {
			unserved, err := absentDefinitions(ctx, client, objects)
			if err != nil {
				return err
			}
			return o.leaveElsewhere(webhook, unserved)
		}
	}
	if objects, err = i.leaveOthers(ctx, objects); err != nil {
		return err
	}
	if err := o.needsGroups(ctx, client, settings.GangScheduler); err != nil {
		return err
	}
	a := &apply.Applier{Client: client.Dynamic, Force: o.Flags.force, DryRun: i.dry(), Report: i.report}
	if err := a.Conflicts(ctx, objects); err != nil {
		outcome := "is not installed, and nothing is changed"
		if own != nil {
			outcome = "stays as it is"
		}
		return fmt.Errorf("the training operator %s: %w", outcome, err)
	}
	if err = a.Apply(ctx, objects); err == nil {
		err = i.err
	}
	fmt.Fprintf(o.IO.ErrOut, "%s%s\n", i.summary(), i.suffix())
	if err != nil || i.dry() || !o.Flags.wait {
		return err
	}
	return o.await(ctx, client, settings.Namespace, manifests.Name)
}

// webhookOfAnother is the webhook of an operator that gangctl did not install, in the place of that which is to be; nil without.
func webhookOfAnother(ctx context.Context, client *kube.Client, objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, object := range objects {
		if object.GetKind() != "ValidatingWebhookConfiguration" {
			continue
		}
		there, err := apply.Get(ctx, client.Dynamic, object)
		if err != nil || there == nil {
			return nil, err
		}
		if ours := there.GetLabels()[install.LabelInstance] == manifests.Name && install.Of(there, manifests.Name); !ours {
			return there, nil
		}
	}
	return nil, nil
}

// absentDefinitions are the names of the definitions among objects that the cluster does not have.
func absentDefinitions(ctx context.Context, client *kube.Client, objects []*unstructured.Unstructured) (absent []string, err error) {
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		there, err := apply.Get(ctx, client.Dynamic, object)
		if err != nil {
			return nil, err
		}
		if there == nil {
			absent = append(absent, object.GetName())
		}
	}
	return absent, nil
}

// leaveElsewhere leaves an operator alone that is no Deployment of this cluster: two would act on the same jobs. One whose jobs are not served does nothing: what there is of it
// is probably left of one that was removed.
func (o *OperatorOptions) leaveElsewhere(webhook *unstructured.Unstructured, unserved []string) error {
	what := fmt.Sprintf("%s, made by %s, is that of a training operator that is there already, and no Deployment of this cluster", apply.Describe(webhook), apply.Owner(webhook))
	takeAway := fmt.Sprintf("if no operator runs any more, take it away, and run the command again: kubectl delete validatingwebhookconfiguration %s; to take over what is there: --force-conflicts", webhook.GetName())
	if len(unserved) > 0 {
		return failure.Errorf("the training operator is not installed: %s, made by %s, is that of another one, which is no Deployment of this cluster, and the cluster does not serve %s", apply.Describe(webhook), apply.Owner(webhook), strings.Join(unserved, ", ")).
			WithHint("%s", takeAway)
	}
	typed := o.OfNew
	if o.Settings.GangScheduler != "" {
		typed = append(typed, "--gang-scheduler")
	}
	if len(typed) > 0 {
		return failure.Errorf("%s: it is changed where it runs, and %s has no effect", what, strings.Join(typed, ", ")).WithHint("%s", takeAway)
	}
	fmt.Fprintf(o.IO.ErrOut, "%s\nit is left alone: gangctl submit makes the gang of each job itself, so nothing has to be changed; %s\n", what, takeAway)
	return nil
}

// needsGroups refuses to have an operator make groups that are not served: releases from v1.8 on do not start without them.
func (o *OperatorOptions) needsGroups(ctx context.Context, client *kube.Client, scheduler string) error {
	if scheduler == "" {
		return nil
	}
	known := operator.Operator{Release: operator.Release{Major: 1, Minor: 9, Patch: 4}}
	return served(ctx, client, known.Render(scheduler).Group)
}

func served(ctx context.Context, client *kube.Client, group string) error {
	groups, err := client.Typed.Discovery().ServerGroups()
	if err != nil {
		return fmt.Errorf("list the served APIs: %w", err)
	}
	for _, g := range groups.Groups {
		if g.Name == group {
			return ctx.Err()
		}
	}
	return failure.Errorf("the operator would make PodGroups of %s, which the cluster does not serve", group).
		WithHint("install scheduler brings those of scheduling.x-k8s.io; others come with their scheduler")
}

func (o *OperatorOptions) await(ctx context.Context, client *kube.Client, namespace, name string) error {
	progress := func(step string) { fmt.Fprintf(o.IO.ErrOut, "%s: %s\n", name, step) }
	err := apply.WaitReady(ctx, client.Typed, namespace, name, o.Flags.timeout, progress)
	if err == nil {
		fmt.Fprintf(o.IO.ErrOut, "%s is ready in namespace %s\n", name, namespace)
	}
	return err
}
