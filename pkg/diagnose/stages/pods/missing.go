package pods

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	"k8s.io/utils/ptr"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// existing are the names of the objects of the kind that a refusal names.
func existing(c *stage.Context, kind refusal.Kind) []string {
	var have []string
	switch kind {
	case refusal.PriorityClass:
		for _, o := range c.View.Snap.PriorityClasses {
			have = append(have, o.Name)
		}
	case refusal.ServiceAccount:
		for _, o := range c.View.Snap.ServiceAccounts {
			if o.Namespace == c.Gang.Meta.Namespace {
				have = append(have, o.Name)
			}
		}
	case refusal.RuntimeClass:
		for _, o := range c.View.Snap.RuntimeClasses {
			have = append(have, o.Name)
		}
	default: // the others name no such object
	}
	return have
}

// classMissing finds that what a refusal names does not exist. It is nil if it has been made since.
func classMissing(c *stage.Context, r refusal.Refusal) *stage.Finding {
	have := existing(c, r.Kind)
	if slices.Contains(have, r.Object) {
		return nil
	}
	have = slices.DeleteFunc(have, func(name string) bool {
		return strings.HasPrefix(name, "system-") || r.Kind == refusal.PriorityClass && ofCluster(c, name)
	})
	var f *stage.Finding
	nearest := suggest.Nearest(r.Object, have)
	switch r.Kind {
	case refusal.PriorityClass:
		f = priorityMissing(c, r, have, nearest)
	case refusal.ServiceAccount:
		f = accountMissing(c, r, have)
	default:
		f = runtimeMissing(c, r, have, nearest)
	}
	if nearest != "" {
		f.Detail("did you mean %s?", nearest)
	}
	return f.Fact("have", have)
}

// highestUserPriority is the highest value that a PriorityClass can have that is not Kubernetes' own.
const highestUserPriority = 1000000000

// ofCluster reports whether a PriorityClass is meant for what runs the cluster, such as a scheduler, and for no job.
func ofCluster(c *stage.Context, name string) bool {
	return slices.ContainsFunc(c.View.Snap.PriorityClasses, func(p *schedulingv1.PriorityClass) bool { return p.Name == name && p.Value >= highestUserPriority })
}

// create is a fix that makes what is missing.
func create(kind, key, name, command string, add func(*snapshot.Snapshot)) stage.Fix {
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.Admin, Text: "create " + kind + " " + name, Change: map[string]any{key: name}, Command: command},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			n := s.Clone()
			add(n)
			return n
		},
	}
}

func priorityMissing(c *stage.Context, r refusal.Refusal, have []string, nearest string) *stage.Finding {
	f := stage.Found(answer.PriorityMissing, "PriorityClass %q does not exist; there are: %s", r.Object, phrase.Names(have)).
		Fact("priorityClass", r.Object)
	if nearest != "" {
		f.Fix(refusal.Rename(c.Gang, "priorityClassName", r.Object, nearest, func(spec *corev1.PodSpec) {
			if spec.PriorityClassName == r.Object {
				spec.PriorityClassName = nearest
			}
		}, r))
	}
	return f.Fix(create("PriorityClass", "priorityClass", r.Object, command.Kubectl("", "create", "priorityclass", r.Object, "--value=1000"), func(s *snapshot.Snapshot) {
		s.PriorityClasses = append(s.PriorityClasses, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: r.Object}, Value: 1000})
	}))
}

func accountMissing(c *stage.Context, r refusal.Refusal, have []string) *stage.Finding {
	ns := c.Gang.Meta.Namespace
	f := stage.Found(answer.AccountMissing, "ServiceAccount %q does not exist in namespace %s, so its pods are not accepted", r.Object, ns).
		Fact("serviceAccount", r.Object)
	if len(have) > 0 {
		f.Detail("there are: %s", phrase.Names(have))
	}
	fix := create("ServiceAccount", "serviceAccount", r.Object, command.Kubectl(ns, "create", "serviceaccount", r.Object), func(s *snapshot.Snapshot) {
		s.ServiceAccounts = append(s.ServiceAccounts, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: r.Object}})
	})
	fix.By = answer.User
	return f.Fix(fix)
}

// maxInstead is how many RuntimeClasses are offered instead of one that does not exist.
const maxInstead = 2

func runtimeMissing(c *stage.Context, r refusal.Refusal, have []string, nearest string) *stage.Finding {
	f := stage.Found(answer.RuntimeMissing, "RuntimeClass %q does not exist; there are: %s", r.Object, phrase.Names(have)).
		Fact("runtimeClass", r.Object)
	instead := have[:min(len(have), maxInstead)]
	if nearest != "" {
		instead = []string{nearest}
	}
	for _, name := range instead {
		f.Fix(refusal.Rename(c.Gang, "runtimeClassName", r.Object, name, func(spec *corev1.PodSpec) {
			if ptr.Deref(spec.RuntimeClassName, "") == r.Object {
				spec.RuntimeClassName = &name
			}
		}, r))
	}
	return f.Fix(create("RuntimeClass", "runtimeClass", r.Object, "", func(s *snapshot.Snapshot) {
		s.RuntimeClasses = append(s.RuntimeClasses, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: r.Object}})
	}))
}

// implied are refusals that follow without an event: what the pods name is not there. Events expire after an hour. A kind of
// which the snapshot holds no object at all may not have been looked at.
func implied(c *stage.Context, missing []absent) []refusal.Refusal {
	var all []refusal.Refusal
	for _, m := range missing {
		spec := c.Gang.RoleByName(m.Role).Template.Spec
		for _, r := range []refusal.Refusal{
			{Kind: refusal.PriorityClass, Object: spec.PriorityClassName}, {Kind: refusal.ServiceAccount, Object: spec.ServiceAccountName}, {Kind: refusal.RuntimeClass, Object: ptr.Deref(spec.RuntimeClassName, "")},
		} {
			if r.Object != "" && lacks(c, r.Kind, r.Object) {
				r.Role = m.Role
				all = append(all, r)
			}
		}
	}
	return all
}

// made reports whether a member of a role has a pod: what the API server takes of the role has what its template lacks, as from a webhook.
func made(c *stage.Context, role string) bool {
	return slices.ContainsFunc(c.Gang.Members, func(m gang.Member) bool { return m.Role == role && m.Pod != nil })
}

// invalid are refusals that follow from the templates alone. Where one of those that were seen is of that, it has its times; where pods of a role were accepted, only
// such a one shows that others are not.
func invalid(c *stage.Context, missing []absent, seen []refusal.Refusal) []refusal.Refusal {
	var all []refusal.Refusal
	reported := slices.ContainsFunc(seen, func(s refusal.Refusal) bool { return strings.Contains(s.Raw, " is invalid: ") })
	for _, m := range missing {
		message := fault(c.Gang.RoleByName(m.Role).Template.Spec, c.View.Virtual(c.Gang, m.Member).Spec)
		if message == "" || made(c, m.Role) && !reported {
			continue
		}
		r := refusal.Refusal{Kind: refusal.Other, Message: message, Role: m.Role}
		for _, s := range seen {
			if strings.Contains(s.Raw, " is invalid: ") && r.Count == 0 {
				r.Raw, r.First, r.Last, r.Count, r.Probed = s.Raw, s.First, s.Last, s.Count, s.Probed
			}
		}
		all = append(all, r)
	}
	return all
}

// fault is why the API server takes no pod with the resources of a template, with what it fills in: a part of a device, of which it takes whole numbers; a request above
// the container's own limit; or a request for devices that is not their limit. It is "" where it takes them.
func fault(template, filled corev1.PodSpec) string {
	all := slices.Concat(filled.InitContainers, filled.Containers)
	for _, c := range slices.Concat(template.InitContainers, template.Containers) {
		for _, list := range []corev1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
			for _, name := range slices.Sorted(maps.Keys(list)) {
				if q := list[name]; v1helper.IsExtendedResourceName(name) && q.Cmp(*resource.NewQuantity(q.Value(), q.Format)) != 0 {
					return fmt.Sprintf("container %s requests %s of %s, which has to be a whole number", c.Name, q.String(), name)
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.Resources.Requests)) {
			request := c.Resources.Requests[name]
			limit, own := c.Resources.Limits[name]
			limited := slices.ContainsFunc(all, func(x corev1.Container) bool {
				_, ok := x.Resources.Limits[name]
				return ok && x.Name == c.Name
			})
			switch {
			case own && request.Cmp(limit) > 0:
				return fmt.Sprintf("container %s requests %s of %s, more than its own limit of %s", c.Name, request.String(), name, limit.String())
			case v1helper.IsOvercommitAllowed(name):
			case !limited:
				return fmt.Sprintf("container %s requests %s of %s and has no limit of it, which has to be the same", c.Name, request.String(), name)
			case own && request.Cmp(limit) < 0:
				return fmt.Sprintf("container %s requests %s of %s and has a limit of %s, which have to be the same", c.Name, request.String(), name, limit.String())
			}
		}
	}
	return ""
}

// lacks reports whether something that pods name is known not to exist.
func lacks(c *stage.Context, kind refusal.Kind, name string) bool {
	lists := map[refusal.Kind]string{refusal.PriorityClass: "priorityclasses.scheduling.k8s.io", refusal.ServiceAccount: "serviceaccounts", refusal.RuntimeClass: "runtimeclasses.node.k8s.io"}
	have := existing(c, kind)
	return c.View.Snap.CanList(lists[kind], c.Gang.Meta.Namespace) && len(have) > 0 && !slices.Contains(have, name)
}
