package stages

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
)

// existing are the names of the objects of the kind that a refusal names.
func (c *climb) existing(kind refusalKind) []string {
	var have []string
	switch kind {
	case refusedPriority:
		for _, o := range c.w.Snap.PriorityClasses {
			have = append(have, o.Name)
		}
	case refusedAccount:
		for _, o := range c.w.Snap.ServiceAccounts {
			if o.Namespace == c.g.Meta.Namespace {
				have = append(have, o.Name)
			}
		}
	case refusedRuntime:
		for _, o := range c.w.Snap.RuntimeClasses {
			have = append(have, o.Name)
		}
	default: // the others name no such object
	}
	return have
}

// classMissing: what a refusal names does not exist. It is nil if it has been made since.
func (c *climb) classMissing(r refusal) *Finding {
	have := c.existing(r.kind)
	if slices.Contains(have, r.object) {
		return nil
	}
	have = slices.DeleteFunc(have, func(name string) bool { return strings.HasPrefix(name, "system-") })
	var f *Finding
	nearest := suggest.Nearest(r.object, have)
	switch r.kind {
	case refusedPriority:
		f = c.priorityMissing(r, have, nearest)
	case refusedAccount:
		f = c.accountMissing(r, have)
	default:
		f = c.runtimeMissing(r, have, nearest)
	}
	if nearest != "" {
		f.detail("did you mean %s?", nearest)
	}
	return f.fact("have", have)
}

// create is a fix that makes what is missing.
func (c *climb) create(kind, key, name, command string, add func(*snapshot.Snapshot)) Fix {
	return Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "create " + kind + " " + name, Change: map[string]any{key: name}, Command: command},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := s.Clone()
			add(n)
			return n
		},
	}
}

func (c *climb) priorityMissing(r refusal, have []string, nearest string) *Finding {
	f := found(answer.StagePods, answer.PriorityMissing, answer.Blocked, answer.User, "PriorityClass %q does not exist; there are: %s", r.object, phrase.Names(have)).
		fact("priorityClass", r.object)
	if nearest != "" {
		f.fix(c.rename("priorityClassName", r.object, nearest, func(spec *corev1.PodSpec) {
			if spec.PriorityClassName == r.object {
				spec.PriorityClassName = nearest
			}
		}, r))
	}
	return f.fix(c.create("PriorityClass", "priorityClass", r.object, command.Kubectl("", "create", "priorityclass", r.object, "--value=1000"), func(s *snapshot.Snapshot) {
		s.PriorityClasses = append(s.PriorityClasses, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: r.object}, Value: 1000})
	}))
}

func (c *climb) accountMissing(r refusal, have []string) *Finding {
	ns := c.g.Meta.Namespace
	f := found(answer.StagePods, answer.AccountMissing, answer.Blocked, answer.User, "ServiceAccount %q does not exist in namespace %s, so its pods are not accepted", r.object, ns).
		fact("serviceAccount", r.object)
	if len(have) > 0 {
		f.detail("there are: %s", phrase.Names(have))
	}
	fix := c.create("ServiceAccount", "serviceAccount", r.object, command.Kubectl(ns, "create", "serviceaccount", r.object), func(s *snapshot.Snapshot) {
		s.ServiceAccounts = append(s.ServiceAccounts, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: r.object}})
	})
	fix.By = answer.User
	return f.fix(fix)
}

func (c *climb) runtimeMissing(r refusal, have []string, nearest string) *Finding {
	f := found(answer.StagePods, answer.RuntimeMissing, answer.Blocked, answer.User, "RuntimeClass %q does not exist; there are: %s", r.object, phrase.Names(have)).
		fact("runtimeClass", r.object)
	if nearest != "" {
		f.fix(c.rename("runtimeClassName", r.object, nearest, func(spec *corev1.PodSpec) {
			if deref(spec.RuntimeClassName) == r.object {
				spec.RuntimeClassName = &nearest
			}
		}, r))
	}
	return f.fix(c.create("RuntimeClass", "runtimeClass", r.object, "", func(s *snapshot.Snapshot) {
		s.RuntimeClasses = append(s.RuntimeClasses, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: r.object}})
	}))
}

// rename is a fix that writes another name into every pod template.
func (c *climb) rename(field, from, to string, edit func(*corev1.PodSpec), r refusal) Fix {
	fix := c.edited(answer.Fix, fmt.Sprintf("write %s: %s instead of %s", field, to, from), map[string]any{field: to}, func(spec *whatif.Spec) {
		for i := range spec.Roles {
			edit(&spec.Roles[i].Template.Spec)
		}
	})
	apply := fix.Apply
	fix.Apply = func(s *snapshot.Snapshot) *snapshot.Snapshot {
		n := apply(s)
		if n == nil {
			return nil
		}
		n = whatif.WithoutProbes(n, "Pod")
		return whatif.WithoutEvents(n, func(e *corev1.Event) bool { return e.Message == r.raw })
	}
	return fix
}

func (c *climb) quotaNeedsField(r refusal) *Finding {
	for _, q := range c.w.Snap.ResourceQuotas {
		if q.Namespace == c.g.Meta.Namespace && q.Name == r.object {
			return found(answer.StagePods, answer.QuotaNeedsField, answer.Blocked, answer.User, "quota %s makes a field of the pods mandatory: %s", r.object, r.message).
				see("v1", "ResourceQuota", q, ".spec.hard").fact("quota", r.object).
				fix(c.forgive(r, answer.User, "set the field that quota "+r.object+" asks for, and submit again", ""))
		}
	}
	return nil
}
