package pods

import (
	"fmt"
	"slices"

	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// insecure are refusals that follow from the level of Pod Security that the labels of the namespace enforce, which only an event reports otherwise. Of a role of which a pod was
// accepted there is none: a webhook changes what its template has. Where one may, only a job of which no pods are made for long is taken to be refused, and only where nothing else
// was seen to be.
func insecure(c *stage.Context, missing []absent, seen []refusal.Refusal) (all []refusal.Refusal) {
	tried, _ := refusal.Tried(c.View, c.Gang)
	level, enforced := enforcedLevel(c)
	if tried || !enforced || slices.ContainsFunc(seen, func(r refusal.Refusal) bool { return r.Kind == refusal.Webhook || r.Kind == refusal.Other }) {
		return nil
	}
	if mutated(c) && (c.View.Present().Assumed || c.NoPods || len(seen) > 0 || c.View.Age(c.Gang.Meta.CreationTimestamp.Time) <= stage.CreationGrace) {
		return nil
	}
	type evaluator struct{}
	standards := view.Once(c.View, evaluator{}, func() policy.Evaluator {
		checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
		if err != nil {
			return nil // the checks are those of the library itself
		}
		return checks
	})
	for _, m := range missing {
		pod := c.View.Virtual(c.Gang, m.Member)
		if standards == nil || made(c, m.Role) {
			continue
		}
		if result := policy.AggregateCheckResults(standards.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
			by := fmt.Sprintf("%s %q", podSecurity, level.String())
			all = append(all, refusal.Refusal{Kind: refusal.Webhook, Object: by, Role: m.Role, Message: "violates " + by + ": " + result.ForbiddenDetail()})
		}
	}
	return all
}

// podSecurity is how the API server calls Pod Security in its refusals.
const podSecurity = "PodSecurity"

// secured makes a fix one after which Pod Security has nothing against the pods.
func secured(c *stage.Context, fix stage.Fix) stage.Fix {
	lifted := fix.Apply
	fix.Apply = func(s *snapshot.Snapshot) *snapshot.Snapshot {
		n := lifted(s).Clone()
		for i, ns := range n.Namespaces {
			if ns.Name == c.Gang.Meta.Namespace {
				n.Namespaces[i] = ns.DeepCopy()
				delete(n.Namespaces[i].Labels, api.EnforceLevelLabel)
			}
		}
		return n
	}
	return fix
}

// enforcedLevel is the level of Pod Security that pods of the namespace have to respect, by its labels; ok is false where they enforce none, or it is not seen.
func enforcedLevel(c *stage.Context) (level api.LevelVersion, ok bool) {
	for _, ns := range c.View.Snap.Namespaces {
		if ns.Name != c.Gang.Meta.Namespace || ns.Labels[api.EnforceLevelLabel] == "" {
			continue
		}
		none := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
		rules, errs := api.PolicyToEvaluate(ns.Labels, api.Policy{Enforce: none, Audit: none, Warn: none})
		return rules.Enforce, len(errs) == 0
	}
	return level, false
}

// mutated reports whether a webhook may change the pods before Pod Security sees them.
func mutated(c *stage.Context) bool {
	hooks, _ := refusal.Hooks(c.View)
	return slices.ContainsFunc(hooks, func(h refusal.Hook) bool {
		return h.Config.GetKind() == "MutatingWebhookConfiguration" && h.Creates("pods") && h.Concerns(c.View, c.Gang, "pods", "")
	})
}
