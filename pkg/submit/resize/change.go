// Package resize plans what becomes of a job and of its gang when their size, what members request or where they may run changes,
// whoever wrote them. It is pure: the caller reads and writes the objects.
package resize

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// What is more than this is taken for a slip of the finger, or for a tenant's mischief.
const (
	// MaxReplicas is how many members a role has at most, MaxDevices how many devices a member.
	MaxReplicas = 10000
	MaxDevices  = 1024
	// MaxMinimum is the largest minimum of a gang: a job has few roles that large.
	MaxMinimum = 4 * MaxReplicas
	// maxRules is how many roles, labels of nodes and tolerations a change has at most.
	maxRules = 64
)

// DefaultDevice is the extended resource that GPU counts are about where members request none yet.
const DefaultDevice corev1.ResourceName = "nvidia.com/gpu"

// Change is what is to be different about a job. What is empty stays as it is.
type Change struct {
	// Roles are changes of single roles, each at most once.
	Roles []Role `json:"roles,omitempty"`
	// MinAvailable is how many members must start together; 0 keeps it in proportion: all members stay all members.
	MinAvailable int32 `json:"minAvailable,omitempty"`
	// NodeSelector are labels that nodes must have, beyond those that are required already; AnyNode are keys of labels that they need
	// not have any more.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	AnyNode      []string          `json:"anyNode,omitempty"`
	// Tolerations are further ones.
	Tolerations   []corev1.Toleration `json:"tolerations,omitempty"`
	PriorityClass string              `json:"priorityClass,omitempty"`
	Queue         string              `json:"queue,omitempty"`
}

// Role is what is to be different about one role.
type Role struct {
	// Name is the role, whatever the case.
	Name     string `json:"name"`
	Replicas *int32 `json:"replicas,omitempty"`
	// GPUs are the devices of each member: of the kind that it requests, unless Device names another.
	GPUs   *int64              `json:"gpus,omitempty"`
	Device corev1.ResourceName `json:"device,omitempty"`
	CPU    *resource.Quantity  `json:"cpu,omitempty"`
	Memory *resource.Quantity  `json:"memory,omitempty"`
	// Storage is the local disk of each member.
	Storage *resource.Quantity `json:"ephemeralStorage,omitempty"`
	// Devices are further extended resources of each member, and huge pages; 0 of one means that it requests none any more.
	Devices corev1.ResourceList `json:"devices,omitempty"`
}

// Empty reports whether nothing about the role changes.
func (r Role) Empty() bool {
	return r.Replicas == nil && !r.Requests()
}

// Requests reports whether what the members request changes.
func (r Role) Requests() bool {
	return r.GPUs != nil || r.CPU != nil || r.Memory != nil || r.Storage != nil || len(r.Devices) > 0
}

// quantities are the requests that are no counts, by resource; nil for one that stays.
func (r Role) quantities() map[corev1.ResourceName]*resource.Quantity {
	return map[corev1.ResourceName]*resource.Quantity{corev1.ResourceCPU: r.CPU, corev1.ResourceMemory: r.Memory, corev1.ResourceEphemeralStorage: r.Storage}
}

// Empty reports whether nothing changes.
func (c Change) Empty() bool {
	return len(c.Roles) == 0 && c.MinAvailable == 0 && len(c.NodeSelector) == 0 && len(c.AnyNode) == 0 && len(c.Tolerations) == 0 &&
		c.PriorityClass == "" && c.Queue == ""
}

// role finds the change of a role; it is empty if the role stays.
func (c Change) role(name string) Role {
	for _, r := range c.Roles {
		if strings.EqualFold(r.Name, name) {
			return r
		}
	}
	return Role{Name: name}
}

// reaches reports whether the pods of a role change.
func (c Change) reaches(role string) bool {
	return c.role(role).Requests() || len(c.NodeSelector)+len(c.AnyNode)+len(c.Tolerations) > 0 || c.PriorityClass != ""
}

// Validate refuses what no job can have. A change may come from an annotation, which whoever may write the job may write.
func (c Change) Validate() error {
	if n := max(len(c.Roles), len(c.NodeSelector), len(c.AnyNode), len(c.Tolerations)); n > maxRules {
		return fmt.Errorf("%d roles, labels or tolerations: at most %d", n, maxRules)
	}
	seen := map[string]bool{}
	for _, r := range c.Roles {
		if seen[strings.ToLower(r.Name)] || r.Empty() {
			return fmt.Errorf("role %q: must change something, and be there once", r.Name)
		}
		seen[strings.ToLower(r.Name)] = true
		if err := r.validate(); err != nil {
			return fmt.Errorf("role %q: %w", r.Name, err)
		}
	}
	if c.MinAvailable < 0 || c.MinAvailable > MaxMinimum {
		return fmt.Errorf("a minimum of %d: must be from 1 to %d", c.MinAvailable, MaxMinimum)
	}
	for _, name := range []string{c.PriorityClass, c.Queue} {
		if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("%q: not the name of an object", name)
		}
	}
	return c.validatePlace()
}

// validateRoleName refuses what is no name of a role: kinds spell theirs like labels of DNS, but for the case.
func validateRoleName(name string) error {
	if problems := validation.IsDNS1123Label(strings.ToLower(name)); len(problems) > 0 {
		return errors.New("not the name of a role")
	}
	return nil
}

func (r Role) validate() error {
	if err := validateRoleName(r.Name); err != nil {
		return err
	}
	if r.Replicas != nil && (*r.Replicas < 0 || *r.Replicas > MaxReplicas) {
		return fmt.Errorf("%d members: must be from 0 to %d", *r.Replicas, MaxReplicas)
	}
	if r.GPUs != nil && (*r.GPUs < 0 || *r.GPUs > MaxDevices) {
		return fmt.Errorf("%d devices: must be from 0 to %d", *r.GPUs, MaxDevices)
	}
	if r.Device != "" && !request.IsExtended(r.Device) {
		return fmt.Errorf("%q: not an extended resource, DOMAIN/NAME", r.Device)
	}
	if len(r.Devices) > maxRules {
		return fmt.Errorf("%d devices: at most %d", len(r.Devices), maxRules)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Devices)) {
		q := r.Devices[name]
		switch huge := request.IsHugePages(name); {
		case !huge && !request.IsExtended(name):
			return fmt.Errorf("%q: neither an extended resource, DOMAIN/NAME, nor huge pages", name)
		case !request.IsWhole(name, q):
			return fmt.Errorf("%s of %s: must be a whole number of them", q.String(), name)
		case !huge && q.Value() > MaxDevices:
			return fmt.Errorf("%s of %s: must be from 0 to %d", q.String(), name, MaxDevices)
		}
	}
	for _, q := range r.quantities() {
		if q != nil && q.Sign() <= 0 {
			return fmt.Errorf("a request of %s: must be greater than zero", q)
		}
	}
	return nil
}

// validatePlace checks what rules where members may run.
func (c Change) validatePlace() error {
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(c.NodeSelector)) {
		problems = append(problems, content.IsLabelKey(key)...)
		problems = append(problems, content.IsLabelValue(c.NodeSelector[key])...)
		if slices.Contains(c.AnyNode, key) {
			problems = append(problems, fmt.Sprintf("%q is both required and not", key))
		}
	}
	for _, key := range c.AnyNode {
		problems = append(problems, content.IsLabelKey(key)...)
	}
	for _, t := range c.Tolerations {
		problems = append(problems, content.IsLabelValue(t.Value)...)
		if t.Key != "" {
			problems = append(problems, content.IsLabelKey(t.Key)...)
		}
		if t.Operator != corev1.TolerationOpExists && (t.Operator != corev1.TolerationOpEqual || t.Key == "") {
			problems = append(problems, fmt.Sprintf("a toleration with the operator %q", t.Operator))
		}
		if effects := []corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}; !slices.Contains(effects, t.Effect) {
			problems = append(problems, fmt.Sprintf("a toleration of the effect %q", t.Effect))
		}
		if t.TolerationSeconds != nil {
			problems = append(problems, "a toleration for a time")
		}
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}
