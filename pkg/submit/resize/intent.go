package resize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/submit/provenance"
)

// Annotation is on a job while it is being resized. It goes in the same patch that changes the job, so that one which has it has not
// been changed yet.
const Annotation = provenance.ResizeAnnotation

// maxIntent is how long the annotation is at most, in bytes.
const maxIntent = 8 << 10

// Intent is a change that has begun, as it is kept on the job until it is done.
type Intent struct {
	// Change is as it was requested.
	Change Change `json:"change"`
	// Min is the minimum that the gang will have: a group object that is changed already does not show it.
	Min int32 `json:"min"`
	// Resume is true for a job that was suspended for the change only.
	Resume bool `json:"resume,omitempty"`
	// Derived is true if the operator declared the gang from what the job specifies: it may have deleted the object with the pods.
	Derived bool `json:"derived,omitempty"`
	// Was is what the change replaces in the group object; nil where that stays, or there is none.
	Was *whatif.Declared `json:"was,omitempty"`
}

// Encode is the value of the annotation.
func (i Intent) Encode() (string, error) {
	text, err := json.Marshal(i)
	if err == nil && len(text) > maxIntent {
		err = fmt.Errorf("the change has %d bytes, at most %d can be kept on the job", len(text), maxIntent)
	}
	return string(text), err
}

// Same reports whether two changes are the same.
func Same(a, b Change) bool { return equality.Semantic.DeepEqual(a, b) }

// Begun is the change of a job that has begun and is not done; nil without. What is there may have been written by whoever may write
// the job: it is bounded, and nothing but a change that flags could make.
func Begun(job metav1.Object) (*Intent, error) {
	text, there := job.GetAnnotations()[Annotation]
	if !there {
		return nil, nil
	}
	i, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", Annotation, err)
	}
	return i, nil
}

func decode(text string) (*Intent, error) {
	if len(text) > maxIntent {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(text), maxIntent)
	}
	reader := json.NewDecoder(bytes.NewBufferString(text))
	reader.DisallowUnknownFields()
	i := &Intent{}
	if err := reader.Decode(i); err != nil {
		return nil, fmt.Errorf("it is no change of a job: %w", err)
	}
	if _, err := reader.Token(); err != io.EOF {
		return nil, fmt.Errorf("it is no change of a job: more follows it")
	}
	if i.Min < 1 || i.Min > MaxMinimum || i.Change.Empty() {
		return nil, fmt.Errorf("it is no change of a job")
	}
	if err := validateWas(i.Was); err != nil {
		return nil, fmt.Errorf("it is no change of a job: %w", err)
	}
	return i, i.Change.Validate()
}

// validateWas refuses what no group object can have had.
func validateWas(was *whatif.Declared) error {
	if was == nil {
		return nil
	}
	if was.Min < 1 || was.Min > MaxMinimum || max(len(was.MinResources), len(was.RoleMin)) > maxRules {
		return fmt.Errorf("a minimum of %d, with %d resources and %d roles", was.Min, len(was.MinResources), len(was.RoleMin))
	}
	for _, name := range []string{was.Queue, was.PriorityClass} {
		if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("%q: not the name of an object", name)
		}
	}
	for name, q := range was.MinResources {
		if len(content.IsLabelKey(string(name))) > 0 || q.Sign() < 0 {
			return fmt.Errorf("%q: not an amount of a resource", name)
		}
	}
	for role, n := range was.RoleMin {
		if err := validateRoleName(role); err != nil || n < 0 || n > MaxReplicas {
			return fmt.Errorf("role %q: not a minimum of it", role)
		}
	}
	return nil
}
