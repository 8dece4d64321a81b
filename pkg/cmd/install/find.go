package install

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

// Installation is what is on a cluster of the scheduler.
type Installation struct {
	// Objects are all that are labelled as the scheduler's, in the order in which they are applied.
	Objects []*unstructured.Unstructured
	// Namespace, Version and Settings are those of its Deployment; Namespace is empty if there is none.
	Namespace string
	Version   string
	Settings  Settings
}

// Find looks for what any version of gangctl has installed of the scheduler.
func Find(ctx context.Context, client *kube.Client) (*Installation, error) {
	objects, err := apply.Find(ctx, client.Dynamic, install.Selector(install.SchedulerInstance), apply.ShippedKinds())
	if err != nil {
		return nil, err
	}
	found := &Installation{Objects: objects, Settings: Defaults()}
	for _, object := range objects {
		if object.GetKind() != "Deployment" || object.GetName() != install.SchedulerInstance {
			continue
		}
		if found.Namespace != "" {
			return nil, failure.Errorf("there are two installations of the scheduler: in namespace %s and in namespace %s", found.Namespace, object.GetNamespace()).
				WithHint("delete the Deployment of one of them: kubectl -n NAMESPACE delete deployment %s", install.SchedulerInstance)
		}
		found.Namespace, found.Version = object.GetNamespace(), object.GetLabels()[install.LabelVersion]
		kept := object.GetAnnotations()[SettingsAnnotation]
		if kept == "" {
			continue
		}
		if err := json.Unmarshal([]byte(kept), &found.Settings); err != nil {
			return nil, fmt.Errorf("read annotation %s of %s: %w", SettingsAnnotation, apply.Describe(object), err)
		}
	}
	return found, nil
}

// Names are all scheduler names that it answers to.
func (i *Installation) Names() []string { return slices.Clone(i.Settings.names()) }

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
