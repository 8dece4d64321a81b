package render

import (
	"cmp"
	"fmt"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/pkg/gang/dialect/schedulerplugins"
)

// declare adds what the job lacks to be a gang of c.dialect: marks on the pods, the scheduling policy, the PodGroup.
func (c *completion) declare() error {
	c.leaveOut()
	n, err := c.minimum()
	if err != nil {
		return err
	}
	if total := members(c.typed); n > total {
		return fmt.Errorf("its gang needs %d members, but has %d", n, total)
	}
	name := cmp.Or(c.name, c.typed.Name)
	if c.PodGroup != nil {
		name = c.PodGroup.GetName()
	}
	c.mark(name, n)
	c.policy(n)
	if c.dialect != gang.SchedulerPlugins || c.PodGroup != nil {
		return nil
	}
	policy := c.typed.Spec.RunPolicy.SchedulingPolicy
	pg := podGroup(Spec{Name: name, Namespace: c.typed.Namespace, MinAvailable: n}, c.minResources(n))
	if policy != nil {
		pg.Spec.ScheduleTimeoutSeconds = policy.ScheduleTimeoutSeconds
	}
	c.PodGroup, err = Unstructured(pg)
	return err
}

// minimum is how many members must start together: as the PodGroup says, the marks, the command line, the job's policy, or all.
func (c *completion) minimum() (int32, error) {
	if c.PodGroup != nil {
		pg, err := schedulerplugins.Decode(c.PodGroup)
		if err != nil {
			return 0, err
		}
		return schedulerplugins.MinMember(pg), nil
	}
	n := c.s.MinAvailable
	check := func(said int32, where string) error {
		if n > 0 && n != said {
			return &ContradictionError{Flag: "min-available", File: fmt.Sprintf("%s is %d", where, said)}
		}
		n = said
		return nil
	}
	if c.dialect == gang.Labels && c.name != "" {
		for _, role := range sortedRoles(c.typed) {
			template := &c.typed.Spec.TFReplicaSpecs[role].Template
			said, err := labels.MinAvailable(template)
			if err != nil && template.Labels[labels.MinAvailableLabel] == "" {
				continue
			}
			if err == nil {
				err = check(said, "label "+labels.MinAvailableLabel)
			}
			if err != nil {
				return 0, fmt.Errorf("the pods of %s: %w", role, err)
			}
		}
		if n > 0 {
			return n, nil
		}
	}
	if policy := c.typed.Spec.RunPolicy.SchedulingPolicy; policy != nil && policy.MinAvailable != nil {
		if err := check(*policy.MinAvailable, "spec.runPolicy.schedulingPolicy.minAvailable"); err != nil {
			return 0, err
		}
		if n < 1 {
			return 0, fmt.Errorf("spec.runPolicy.schedulingPolicy.minAvailable is %d: must be 1 or more", n)
		}
	}
	return cmp.Or(n, members(c.typed)), nil
}

// leaveOut: if the file puts some pods into a gang, it left the others out on purpose.
func (c *completion) leaveOut() {
	if c.name == "" || len(c.unmarked) == 0 {
		return
	}
	var roles []string
	for _, role := range c.unmarked {
		roles = append(roles, string(role))
		delete(c.typed.Spec.TFReplicaSpecs, role)
	}
	c.Notes = append(c.Notes, fmt.Sprintf("the pods of %s are in no gang, as the file has it", strings.Join(roles, ", ")))
}

// mark puts the pods into the gang.
func (c *completion) mark(name string, minAvailable int32) {
	c.each(func(role kubeflowv1.ReplicaType, _ *kubeflowv1.ReplicaSpec) {
		meta := metav1.ObjectMeta{}
		if c.dialect == gang.Labels {
			labels.Mark(&meta, name, minAvailable)
		} else {
			schedulerplugins.Mark(&meta, name)
		}
		for key, value := range meta.Labels {
			c.set(value, role, "metadata", "labels", key)
		}
	})
}

// policy tells an operator that manages gangs itself the same numbers, where the file does not.
func (c *completion) policy(minAvailable int32) {
	policy := c.typed.Spec.RunPolicy.SchedulingPolicy
	if policy == nil || policy.MinAvailable == nil {
		set(c.Job, int64(minAvailable), "spec", "runPolicy", "schedulingPolicy", "minAvailable")
	}
	if policy == nil || policy.MinResources == nil {
		for name, quantity := range c.minResources(minAvailable) {
			set(c.Job, text(quantity), "spec", "runPolicy", "schedulingPolicy", "minResources", string(name))
		}
	}
}

// minResources are those that the job's policy says, or what so many members ask for.
func (c *completion) minResources(minAvailable int32) corev1.ResourceList {
	if policy := c.typed.Spec.RunPolicy.SchedulingPolicy; policy != nil && policy.MinResources != nil {
		return corev1.ResourceList(*policy.MinResources)
	}
	return gangResources(c.typed, minAvailable)
}

func text(q resource.Quantity) string { return q.String() }
