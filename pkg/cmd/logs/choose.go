package logs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/container"
	"github.com/gangctl/gangctl/pkg/cluster/logs"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/gang/summary"
)

// indexes reads 0 or 0,2-5.
func indexes(text string) (func(int) bool, error) {
	if text == "" {
		return func(int) bool { return true }, nil
	}
	type span struct{ from, to int }
	var spans []span
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err1 != nil || err2 != nil || from < 0 || to < from {
			return nil, failure.Usagef("--index %q: want numbers from 0 on, such as 0 or 0,2-5", text)
		}
		spans = append(spans, span{from, to})
	}
	return func(i int) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return i >= s.from && i <= s.to })
	}, nil
}

// only narrows the choice down to the one member that was named, pod/NAME; from then on the job is named by its own name.
func (o *Options) only(meant *cmdutil.Target) error {
	arg := o.Name
	o.Name = meant.Job.Meta.Name
	m := meant.Member
	switch {
	case m == nil:
		return nil
	case len(o.Roles) > 0 || o.Index != "":
		return meant.ChosenTwice(arg)
	}
	o.Roles, o.Index = []string{m.Role}, strconv.Itoa(m.Index)
	o.indexes = func(i int) bool { return i == m.Index }
	return nil
}

// choose picks the members that the flags select. It is an error if the job has none of them.
func (o *Options) choose(namespace string, all []summary.Row) ([]summary.Row, error) {
	var roles []string
	for _, m := range all {
		if !slices.Contains(roles, m.Role) {
			roles = append(roles, m.Role)
		}
	}
	for _, role := range o.Roles {
		if !slices.Contains(roles, strings.ToLower(role)) {
			return nil, failure.Errorf("%s has no role %q", o.Name, role).WithHint("its roles are: %s", strings.Join(roles, ", "))
		}
	}
	desired := func(role string) bool {
		return len(o.Roles) == 0 || slices.ContainsFunc(o.Roles, func(r string) bool { return strings.EqualFold(r, role) })
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(m summary.Row) bool { return !desired(m.Role) || !o.indexes(m.Index) })
	if len(chosen) == 0 && len(all) > 0 {
		return nil, failure.Errorf("%s has no member with index %s", o.Name, o.Index).WithHint("see its members: gangctl get %s -n %s", o.Name, namespace)
	}
	return chosen, nil
}

// source is the container to read of a member whose pod exists.
func (o *Options) source(m summary.Row, order []string) (logs.Source, error) {
	name, err := cmdutil.Container(&m, o.Container, append(slices.Clone(m.Pod.Spec.Containers), m.Pod.Spec.InitContainers...))
	return logs.Source{Role: m.Role, Index: m.Index, Order: slices.Index(order, m.Role), Pod: m.Pod, Container: name}, err
}

// roleOrder are the roles in the order in which members are shown.
func roleOrder(all []summary.Row) []string {
	var roles []string
	for _, m := range all {
		if !slices.Contains(roles, m.Role) {
			roles = append(roles, m.Role)
		}
	}
	return roles
}

// bad is how the latest run of a member that failed ended, and whether that was the run before; nil for one that has not failed.
func bad(m logs.Source) (t *corev1.ContainerStateTerminated, before bool) {
	s := container.Status(m.Pod, m.Container)
	switch {
	case s == nil:
		return nil, false
	case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
		return s.State.Terminated, false
	case s.LastTerminationState.Terminated != nil && s.LastTerminationState.Terminated.ExitCode != 0:
		return s.LastTerminationState.Terminated, s.State.Waiting == nil
	}
	return nil, false
}

// first finds the member whose run failed first.
func first(members []logs.Source) (m logs.Source, t *corev1.ContainerStateTerminated, before bool) {
	failed := slices.DeleteFunc(slices.Clone(members), func(m logs.Source) bool {
		t, _ := bad(m)
		return t == nil
	})
	if len(failed) == 0 {
		return logs.Source{}, nil, false
	}
	m = slices.MinFunc(failed, func(a, b logs.Source) int {
		x, _ := bad(a)
		y, _ := bad(b)
		return cmp.Or(x.FinishedAt.Compare(y.FinishedAt.Time), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Index, b.Index))
	})
	t, before = bad(m)
	return m, t, before
}
