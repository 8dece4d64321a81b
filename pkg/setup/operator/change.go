package operator

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// WithGangs is the operator's Deployment as it would be with the flags of [Operator.Flags]: conflicting flags are taken out, and these are
// added where its other flags are. The Deployment itself is not changed.
func (o Operator) WithGangs(flags []string) *appsv1.Deployment {
	d := o.Deployment.DeepCopy()
	c := &d.Spec.Template.Spec.Containers[o.Index]
	c.Command, c.Args = without(c.Command), without(c.Args)
	if len(c.Args) == 0 && len(c.Command) > 1 { // releases up to v1.2 have their flags in the command
		c.Command = append(c.Command, flags...)
	} else {
		c.Args = append(c.Args, flags...)
	}
	return d
}

// without takes the flags for gangs out of argv, with their values.
func without(args []string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !strings.HasPrefix(args[i], "-") || name != enableFlag && name != schedulerFlag {
			kept = append(kept, args[i])
			continue
		}
		if !joined && name == schedulerFlag && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++ // its value; booleans take none in an argument of its own
		}
	}
	return kept
}

// Same reports whether two Deployments start the container in the same way.
func (o Operator) Same(d *appsv1.Deployment) bool {
	line := func(c corev1.Container) []string { return slices.Concat(c.Command, []string{""}, c.Args) }
	return slices.Equal(line(o.Container()), line(d.Spec.Template.Spec.Containers[o.Index]))
}
