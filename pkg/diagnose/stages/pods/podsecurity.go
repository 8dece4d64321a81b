package pods

import (
	"fmt"

	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/refusal"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
)

// insecure are refusals that follow from the level of Pod Security that the labels of the namespace enforce, which only an event reports otherwise. Of a role of which a pod was
// accepted there is none: a webhook changes what its template has. Webhooks aside, the API server may exempt users, namespaces and runtime classes, which is not seen: only a job of
// which no pods are made for long is taken to be refused, and only where nothing else was seen to be. What may be refused before that is noted as not modelled.
func insecure(c *stage.Context, out *stage.Result, missing []absent, seen []refusal.Refusal) (all []refusal.Refusal) {
	tried, _ := refusal.Tried(c.View, c.Gang)
	level, enforced, known := enforcedLevel(c)
	if tried || !enforced {
		return nil
	}
	if !known {
		out.Unmodelled = append(out.Unmodelled, "Pod Security, as a label of the namespace cannot be read")
		return nil
	}
	type evaluator struct{}
	standards := view.Once(c.View.Present(), evaluator{}, func() policy.Evaluator {
		checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
		if err != nil {
			return nil // the checks are those of the library itself
		}
		return checks
	})
	by := fmt.Sprintf("%s %q", podSecurity, level.String())
	for _, m := range missing {
		pod := c.View.Virtual(c.Gang, m.Member)
		if standards == nil || made(c, m.Role) {
			continue
		}
		if result := policy.AggregateCheckResults(standards.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
			all = append(all, refusal.Refusal{Kind: refusal.Webhook, Object: by, Role: m.Role, Message: "violates " + by + ": " + phrase.Shorten(result.ForbiddenDetail(), maxDetail)})
		}
	}
	if len(all) > 0 && (c.View.Present().Assumed || c.NoPods || len(seen) > 0 || c.View.Age(c.Gang.Meta.CreationTimestamp.Time) <= stage.CreationGrace) {
		out.Unmodelled = append(out.Unmodelled, "whether the pods are exempt from "+by+", or changed before it")
		return nil
	}
	return all
}

// maxDetail is how much is quoted of what Pod Security has against pods, in bytes: it names every container.
const maxDetail = 500

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

// enforcedLevel is the level of Pod Security that pods of the namespace have to respect, by its labels; enforced is false where they enforce none, or it is not seen, known is false where
// they cannot be read.
func enforcedLevel(c *stage.Context) (level api.LevelVersion, enforced, known bool) {
	for _, ns := range c.View.Snap.Namespaces {
		if ns.Name != c.Gang.Meta.Namespace || ns.Labels[api.EnforceLevelLabel] == "" {
			continue
		}
		none := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
		rules, errs := api.PolicyToEvaluate(ns.Labels, api.Policy{Enforce: none, Audit: none, Warn: none})
		return rules.Enforce, true, len(errs) == 0
	}
	return level, false, true
}
