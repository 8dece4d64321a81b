package install

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
)

// Installation has the objects of the scheduler that are on a cluster.
type Installation struct {
	// Objects are all that are labelled as the scheduler's and are where only administrators write, in the order in which they are
	// applied.
	Objects []*unstructured.Unstructured
	// Foreign are those with its labels in other namespaces. Whoever may write there may have made them: nothing is read from them.
	Foreign []*unstructured.Unstructured
	// Namespace, Version and Settings are those of its Deployment; Namespace is empty if there is none.
	Namespace string
	Version   string
	Settings  Settings

	// kept is the annotation that Settings were read from.
	kept string
	// bound is the namespace that our ClusterRoleBinding names; empty without one. made are the namespaces that gangctl made.
	bound string
	made  []string
}

// Find looks for what any version of gangctl has installed of the scheduler.
func Find(ctx context.Context, client *kube.Client) (*Installation, error) {
	objects, err := apply.Find(ctx, client.Dynamic, install.Selector(install.SchedulerInstance), apply.ShippedKinds())
	if err != nil {
		return nil, err
	}
	found := &Installation{Settings: Defaults()}
	if err := found.locate(objects); err != nil {
		return nil, err
	}
	found.Objects, found.Foreign = found.Part(objects)
	for _, object := range found.Objects {
		if object.GetKind() != "Deployment" || object.GetName() != install.SchedulerInstance || object.GetNamespace() != found.bound {
			continue
		}
		found.Namespace, found.Version = object.GetNamespace(), object.GetLabels()[install.LabelVersion]
		if found.kept = object.GetAnnotations()[SettingsAnnotation]; found.kept == "" {
			continue
		}
		if err := json.Unmarshal([]byte(found.kept), &found.Settings); err != nil {
			return nil, fmt.Errorf("read annotation %s of %s: %w", SettingsAnnotation, apply.Describe(object), err)
		}
	}
	return found, nil
}

// locate reads where the scheduler is from objects of the whole cluster.
func (i *Installation) locate(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		switch {
		case object.GetKind() == "Namespace":
			i.made = append(i.made, object.GetName())
		case object.GetKind() == "ClusterRoleBinding" && object.GetName() == install.SchedulerBinding:
			b := &rbacv1.ClusterRoleBinding{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, b); err != nil {
				return fmt.Errorf("read %s: %w", apply.Describe(object), err)
			}
			for _, s := range b.Subjects {
				if s.Kind != rbacv1.ServiceAccountKind || s.Namespace == i.bound {
					continue
				}
				if i.bound != "" {
					return failure.Errorf("there are two installations of the scheduler: in namespace %s and in namespace %s", i.bound, s.Namespace).
						WithHint("take the subject of one of them out: kubectl edit clusterrolebinding %s", install.SchedulerBinding)
				}
				i.bound = s.Namespace
			}
		}
	}
	return nil
}

// Home is the namespace in which the scheduler has its rights; empty if it has none. What it writes itself is there.
func (i *Installation) Home() string { return i.bound }

// Part parts objects with the labels of the scheduler into its own and those that any user may have made: those of the whole cluster, of
// kube-system, and of the namespaces that are bound or were made for it are its own.
func (i *Installation) Part(objects []*unstructured.Unstructured) (own, foreign []*unstructured.Unstructured) {
	for _, object := range objects {
		switch namespace := object.GetNamespace(); {
		case namespace == "", namespace == metav1.NamespaceSystem, namespace == i.bound, slices.Contains(i.made, namespace):
			own = append(own, object)
		default:
			foreign = append(foreign, object)
		}
	}
	return own, foreign
}

// warned is how many objects Warn names: any user may have made some.
const warned = 10

// Warn names what has the labels of the scheduler and is not part of it, and how it is taken away.
func (i *Installation) Warn(out io.Writer) {
	for _, object := range i.Foreign[:min(len(i.Foreign), warned)] {
		fmt.Fprintf(out, "note: %s has the labels of the scheduler and is left alone: ClusterRoleBinding %s does not name its namespace; if it is left of an installation: %s\n",
			apply.Describe(object), install.SchedulerBinding, command.Kubectl(object.GetNamespace(), "delete", apply.Name(object)))
	}
	if more := len(i.Foreign) - warned; more > 0 {
		fmt.Fprintf(out, "note: %d more have the labels of the scheduler and are left alone\n", more)
	}
}

// Names are all scheduler names that it answers to.
func (i *Installation) Names() []string { return slices.Clone(i.Settings.names()) }

// KnowsImage returns why nothing shows which image is that of a version of gangctl: the scheduler was installed with one that was typed then, and none is now.
func (i *Installation) KnowsImage(s Settings, typed func(flag string) bool, gangctlVersion string) *failure.Error {
	if s.Image == "" || typed("image") || i.Version == Version(gangctlVersion) {
		return nil
	}
	return failure.Errorf("the scheduler was installed with --image %s, and which image is that of %s is not known", s.Image, gangctlVersion)
}

// changed returns an error if the settings in the cluster are no longer those that were found, which what is applied is based on.
func (i *Installation) changed(object, there *unstructured.Unstructured) error {
	if object.GetKind() != "Deployment" || i.Namespace == "" && there == nil {
		return nil
	}
	if there == nil || i.Namespace == "" || there.GetAnnotations()[SettingsAnnotation] != i.kept {
		return errMeanwhile()
	}
	return nil
}

// errMeanwhile is the error of an installation that another one has overtaken.
func errMeanwhile() error {
	return failure.Errorf("the installation of the scheduler was changed meanwhile by another command").
		WithHint("run the same command again: it keeps what that one has set, and adds what is typed")
}

// allows returns why a scheduler cannot be put where this one is.
func (i *Installation) allows(scheduler install.Scheduler) error {
	if i.Namespace == "" {
		return nil
	}
	if i.Namespace != scheduler.Namespace {
		return failure.Errorf("the scheduler is installed in namespace %s already, and a cluster has one", i.Namespace).
			WithHint("name that one with --namespace %s, or take it away first: gangctl uninstall", i.Namespace)
	}
	if older, known := olderThan(scheduler.Version, i.Version); known && older {
		return failure.Errorf("the installed scheduler is %s, newer than this gangctl, which is %s", i.Version, scheduler.Version).
			WithHint("use gangctl %s or newer, or go back on purpose: gangctl uninstall, then gangctl install scheduler", i.Version)
	}
	return nil
}
