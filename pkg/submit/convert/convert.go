// Package convert brings TFJobs of older API versions and layouts to kubeflow.org/v1 as API servers store it today. It is
// pure, and touches nothing that it does not know.
package convert

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrTooOld is the cause of an error about v1alpha1, whose jobs list their replicas and have one image for all. Nothing
// in it shows which of today's fields a default of that time stands for.
var ErrTooOld = errors.New("gangctl converts TFJobs from v1alpha2 on")

// oldVersions are those that today's operator does not read, the oldest first.
func oldVersions() []string { return []string{"v1alpha2", "v1beta1", "v1beta2"} }

// Converted is a TFJob in today's form.
type Converted struct {
	Job *unstructured.Unstructured
	// Changes are what moved from where the file has it, and Notes what has no effect; each is a sentence without a stop.
	Changes, Notes []string
}

// Reads reports whether an object is a TFJob of any version, also of one that [TFJob] refuses.
func Reads(gvk schema.GroupVersionKind) bool {
	return gvk.Group == kubeflowv1.GroupVersion.Group && gvk.Kind == kubeflowv1.TFJobKind
}

// TFJob converts a TFJob; the object given is not changed. One that has today's form already comes back as it is.
func TFJob(u *unstructured.Unstructured) (*Converted, error) {
	version, today := u.GroupVersionKind().Version, kubeflowv1.GroupVersion.Version
	old := slices.Contains(oldVersions(), version)
	switch {
	case version == "v1alpha1":
		return nil, fmt.Errorf("%s cannot be converted: %w", u.GetAPIVersion(), ErrTooOld)
	case !old && version != today:
		return nil, fmt.Errorf("%s is no version of TFJob that gangctl knows: %s and %s are", u.GetAPIVersion(), strings.Join(oldVersions(), ", "), today)
	}
	c := &conversion{Converted: Converted{Job: u.DeepCopy()}}
	if old {
		c.Job.SetAPIVersion(kubeflowv1.GroupVersion.String())
		c.changed("it is a TFJob of %s now, and was one of %s", c.Job.GetAPIVersion(), u.GetAPIVersion())
	}
	if err := c.policies(old); err != nil {
		return nil, err
	}
	c.restartPolicies()
	return &c.Converted, nil
}

type conversion struct{ Converted }

func (c *conversion) changed(format string, args ...any) {
	c.Changes = append(c.Changes, fmt.Sprintf(format, args...))
}

// policies moves what was directly under spec up to v1.0 into spec.runPolicy, where operators since v1.1 look for it: API
// servers drop it from its old place silently.
func (c *conversion) policies(old bool) error {
	spec, ok := c.Job.Object["spec"].(map[string]any)
	if !ok {
		return nil
	}
	early := old
	for _, name := range movedPolicies() {
		value, found := spec[name]
		if !found {
			continue
		}
		early = true
		delete(spec, name)
		if value == nil {
			continue
		}
		path := []string{"runPolicy", name}
		if there, found, _ := unstructured.NestedFieldNoCopy(spec, path...); found && there != nil {
			if !reflect.DeepEqual(there, value) {
				return fmt.Errorf("spec.%s is %v, but spec.runPolicy.%s is %v: leave out one of them", name, value, name, there)
			}
			c.changed("spec.%s is left out, as spec.runPolicy.%s is the same", name, name)
			continue
		}
		if err := setPolicy(spec, name, value); err != nil {
			return err
		}
		c.changed("spec.%s is spec.runPolicy.%s now", name, name)
	}
	if _, found := spec["cleanPodDelay"]; found {
		delete(spec, "cleanPodDelay")
		c.changed("spec.cleanPodDelay is left out: nothing today corresponds to it")
	}
	if there, found, _ := unstructured.NestedFieldNoCopy(spec, "runPolicy", "cleanPodPolicy"); early && (!found || there == nil) {
		if err := setPolicy(spec, "cleanPodPolicy", string(kubeflowv1.CleanPodPolicyRunning)); err != nil {
			return err
		}
		c.changed("spec.runPolicy.cleanPodPolicy is Running, the default of its time; today's is None, with which parameter servers outlive their job")
	}
	return nil
}

// movedPolicies are the fields that were directly under spec.
func movedPolicies() []string {
	return []string{"activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "ttlSecondsAfterFinished"}
}

func setPolicy(spec map[string]any, name string, value any) error {
	if spec["runPolicy"] == nil {
		delete(spec, "runPolicy") // `runPolicy:` with nothing behind it
	}
	if err := unstructured.SetNestedField(spec, value, "runPolicy", name); err != nil {
		return fmt.Errorf("spec.runPolicy: must be a map of fields")
	}
	return nil
}

// restartPolicies notes those that were written into pod templates, where operators of every version overwrite them.
func (c *conversion) restartPolicies() {
	roles, _, _ := unstructured.NestedMap(c.Job.Object, "spec", "tfReplicaSpecs")
	names := make([]string, 0, len(roles))
	for name := range roles {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		role, _ := roles[name].(map[string]any)
		ignored, _, _ := unstructured.NestedString(role, "template", "spec", "restartPolicy")
		counts, _, _ := unstructured.NestedString(role, "restartPolicy")
		path := "spec.tfReplicaSpecs." + name
		switch {
		case ignored == "" || ignored == counts:
		case ignored == string(kubeflowv1.RestartPolicyNever) && (counts == "" || counts == string(kubeflowv1.RestartPolicyExitCode)):
			// which is what the operator writes there
		case counts == "":
			c.Notes = append(c.Notes, fmt.Sprintf("%s.template.spec.restartPolicy: %s has no effect: the operator goes by %s.restartPolicy, and without one by %s",
				path, ignored, path, kubeflowv1.TFJobDefaultRestartPolicy))
		default:
			c.Notes = append(c.Notes, fmt.Sprintf("%s.template.spec.restartPolicy: %s has no effect: the operator goes by %s.restartPolicy, which is %s",
				path, ignored, path, counts))
		}
	}
}

// Known has every field that a TFJob had in any version from v1alpha2 on. To find unknown fields, compare
// with it, as what is written in a file has not been converted yet.
type Known struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              KnownSpec `json:"spec,omitempty"`
	// Status is only written by operators, and differs between them.
	Status map[string]any `json:"status,omitempty"`
}

// KnownSpec is the spec of a [Known].
type KnownSpec struct {
	kubeflowv1.TFJobSpec `json:",inline"`

	ActiveDeadlineSeconds   *int64                     `json:"activeDeadlineSeconds,omitempty"`
	BackoffLimit            *int32                     `json:"backoffLimit,omitempty"`
	CleanPodPolicy          *kubeflowv1.CleanPodPolicy `json:"cleanPodPolicy,omitempty"`
	TTLSecondsAfterFinished *int32                     `json:"ttlSecondsAfterFinished,omitempty"`
	// CleanPodDelay is a duration that only v1alpha2 had.
	CleanPodDelay *string `json:"cleanPodDelay,omitempty"`
}
