// Package rights writes the RBAC objects that grant what an answer lacks, ready for `kubectl apply -f -`. It is pure.
package rights

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// Grant is the YAML of the smallest roles that hold the rights, each with its binding to the user: a ClusterRole for what has no
// namespace or is wanted in all, a Role for each single namespace. Without a user there are no bindings. It is empty without
// rights.
func Grant(user string, missing []answer.Right) string {
	byNamespace := map[string][]answer.Right{}
	for _, r := range missing {
		byNamespace[r.Namespace] = append(byNamespace[r.Namespace], r)
	}
	var docs []string
	for _, namespace := range sorted(byNamespace) {
		for _, object := range objects(user, namespace, rules(byNamespace[namespace])) {
			text, err := yaml.Marshal(object)
			if err != nil {
				panic(err) // typed values of text always marshal
			}
			docs = append(docs, string(text))
		}
	}
	return strings.Join(docs, "---\n")
}

func sorted(m map[string][]answer.Right) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// rules merge rights of one API group and one verb, sorted.
func rules(missing []answer.Right) []rbacv1.PolicyRule {
	type key struct{ group, verb string }
	resources := map[key][]string{}
	var keys []key
	for _, r := range missing {
		k := key{r.Group, r.Verb}
		if _, known := resources[k]; !known {
			keys = append(keys, k)
		}
		if !slices.Contains(resources[k], r.Resource) {
			resources[k] = append(resources[k], r.Resource)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.verb, b.verb)) })
	var all []rbacv1.PolicyRule
	for _, k := range keys {
		slices.Sort(resources[k])
		all = append(all, rbacv1.PolicyRule{APIGroups: []string{k.group}, Resources: resources[k], Verbs: []string{k.verb}})
	}
	return all
}

// objects are a role and its binding. Their name depends on the rules and the user: who applies two answers one after the
// other must not lose what the first one granted, nor take it from somebody else.
func objects(user, namespace string, rules []rbacv1.PolicyRule) []any {
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%q %q %v", user, namespace, rules)
	meta := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("gangctl-why-pending-%08x", hash.Sum32())}
	api := rbacv1.SchemeGroupVersion.String()
	var role, binding any
	if namespace == "" {
		role = &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "ClusterRole"}, ObjectMeta: meta, Rules: rules}
		binding = &rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "ClusterRoleBinding"}, ObjectMeta: meta,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}, Subjects: subjects(user)}
	} else {
		role = &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "Role"}, ObjectMeta: meta, Rules: rules}
		binding = &rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "RoleBinding"}, ObjectMeta: meta,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}, Subjects: subjects(user)}
	}
	if user == "" {
		return []any{role}
	}
	return []any{role, binding}
}

func subjects(user string) []rbacv1.Subject {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		if namespace, name, ok := strings.Cut(account, ":"); ok {
			return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
		}
	}
	return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
}
