package rbac

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Missing are the parts of the needed rules that the held ones do not grant, as few rules as possible, sorted.
func Missing(held, needed []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	_, atoms := validation.Covers(held, needed)
	return Compact(atoms)
}

// Atoms are rules of one group, one resource, one verb and at most one name each that grant the same.
func Atoms(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	_, atoms := validation.Covers(nil, rules)
	return atoms
}

// Compact merges rules without granting more: first verbs of the same resource, then resources with the same verbs, then API
// groups with the same resources and verbs.
func Compact(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	merged := merge(Atoms(rules), func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs })
	merged = merge(merged, func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames })
	merged = merge(merged, func(r *rbacv1.PolicyRule) *[]string { return &r.Resources })
	merged = merge(merged, func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups })
	slices.SortFunc(merged, func(a, b rbacv1.PolicyRule) int { return cmp.Compare(key(a), key(b)) })
	return merged
}

// merge joins rules that differ in one field only. A rule without names is about all of them, and joins none that has some.
func merge(rules []rbacv1.PolicyRule, field func(*rbacv1.PolicyRule) *[]string) []rbacv1.PolicyRule {
	var merged []rbacv1.PolicyRule
	at := map[string]int{}
	for _, r := range rules {
		rest := *r.DeepCopy()
		of := *field(&rest)
		*field(&rest) = nil
		k := key(rest)
		if len(of) == 0 {
			k += " none"
		}
		i, known := at[k]
		if !known {
			at[k] = len(merged)
			merged = append(merged, *r.DeepCopy())
			continue
		}
		all := append(*field(&merged[i]), of...)
		slices.Sort(all)
		*field(&merged[i]) = slices.Compact(all)
	}
	return merged
}

// key identifies a rule.
func key(r rbacv1.PolicyRule) string {
	return strings.Join([]string{strings.Join(r.APIGroups, ","), strings.Join(r.Resources, ","), strings.Join(r.ResourceNames, ","),
		strings.Join(r.NonResourceURLs, ","), strings.Join(r.Verbs, ",")}, " ")
}

// String reads like `create, delete podgroups.scheduling.x-k8s.io`, or `patch podgroups.scheduling.x-k8s.io/status`.
func String(r rbacv1.PolicyRule) string {
	verbs := strings.Join(r.Verbs, ", ")
	if len(r.NonResourceURLs) > 0 {
		return verbs + " " + strings.Join(r.NonResourceURLs, ", ")
	}
	var names []string
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			name, sub, isSub := strings.Cut(resource, "/")
			if group != "" {
				name += "." + group
			}
			if isSub {
				name += "/" + sub
			}
			names = append(names, name)
		}
	}
	text := verbs + " " + strings.Join(names, ", ")
	if len(r.ResourceNames) > 0 {
		text += " named " + strings.Join(r.ResourceNames, ", ")
	}
	return text
}
