package rbac

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// userSubject is the RBAC subject for a user name of the API server; service accounts are recognised.
func userSubject(name string) rbacv1.Subject {
	if account, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok {
		if namespace, name, ok := strings.Cut(account, ":"); ok {
			return Account{Namespace: namespace, Name: name}.Subject()
		}
	}
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}

// nameOf is PREFIX-HASH, where the hash is that of what is granted where to whom: who applies two grants one after the other
// loses nothing of the first.
func nameOf(prefix string, subject rbacv1.Subject, namespace string, rules []rbacv1.PolicyRule) string {
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%v %q", subject, namespace)
	for _, r := range rules {
		fmt.Fprintf(hash, " %q", key(r))
	}
	return fmt.Sprintf("%s-%08x", prefix, hash.Sum32())
}

// Grant returns the smallest roles that hold rules, and a binding of each to a user as the API server calls them: a ClusterRole for
// what is needed in all namespaces, which have an empty name, and a Role for each other one. Names begin with prefix. Without a
// user there are no bindings.
func Grant(prefix, user string, rules map[string][]rbacv1.PolicyRule) []any {
	subject := rbacv1.Subject{}
	if user != "" {
		subject = userSubject(user)
	}
	var all []any
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		compact := Compact(rules[namespace])
		objects := Objects(nameOf(prefix, subject, namespace, compact), subject, namespace, compact)
		if user == "" {
			objects = objects[:1]
		}
		all = append(all, objects...)
	}
	return all
}

// Objects are a role of that name with the rules, and its binding: for one namespace, or, if it is empty, for the cluster.
func Objects(name string, subject rbacv1.Subject, namespace string, rules []rbacv1.PolicyRule) []any {
	api := rbacv1.SchemeGroupVersion.String()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	subjects := []rbacv1.Subject{subject}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	if namespace == "" {
		return []any{
			&rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "ClusterRole"}, ObjectMeta: meta, Rules: rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "ClusterRoleBinding"}, ObjectMeta: meta,
				RoleRef: ref("ClusterRole"), Subjects: subjects},
		}
	}
	return []any{
		&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "Role"}, ObjectMeta: meta, Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: api, Kind: "RoleBinding"}, ObjectMeta: meta, RoleRef: ref("Role"), Subjects: subjects},
	}
}

// YAML is the text of objects, ready for `kubectl apply -f -`.
func YAML(objects ...any) string {
	var docs []string
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			panic(err) // typed values of text always marshal
		}
		docs = append(docs, string(text))
	}
	return strings.Join(docs, "---\n")
}
