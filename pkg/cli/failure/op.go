package failure

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Op is one request to an API server, in the terms of an RBAC rule.
type Op struct {
	// Verb is the API verb: get, list, watch, create, delete.
	Verb string
	// Resource is what the request was for.
	Resource schema.GroupVersionResource
	// Kind is how messages call the object: TFJob.
	Kind string
	// Namespace is empty for a request over all namespaces.
	Namespace string
	// Name is empty for a collection.
	Name string
}

// String reads like `get TFJob research/llama` or `list TFJobs in namespace research`.
func (o Op) String() string {
	switch {
	case o.Name != "" && o.Namespace != "":
		return fmt.Sprintf("%s %s %s/%s", o.Verb, o.Kind, o.Namespace, o.Name)
	case o.Name != "":
		return fmt.Sprintf("%s %s %s", o.Verb, o.Kind, o.Name)
	case o.Namespace != "":
		return fmt.Sprintf("%s %s in namespace %s", o.Verb, plural(o.Kind), o.Namespace)
	default:
		return fmt.Sprintf("%s %s in all namespaces", o.Verb, plural(o.Kind))
	}
}

// plural is several objects of a kind: PriorityClasses, NetworkPolicies, TFJobs.
func plural(kind string) string {
	stem, y := strings.CutSuffix(kind, "cy")
	switch {
	case strings.HasSuffix(kind, "s"):
		return kind + "es"
	case y:
		return stem + "cies"
	}
	return kind + "s"
}

// served names its resource the way `kubectl api-resources` does.
func (o Op) served() string {
	if o.Resource.Empty() {
		return "this resource"
	}
	return fmt.Sprintf("%s (%s)", o.Resource.GroupResource(), o.Resource.Version)
}

// always reports whether every API server serves its resource. What has none, its version and its discovery, is such, too.
func (o Op) always() bool {
	return o.Verb != "" && (o.Resource.Empty() || slices.Contains([]string{"", "apps", "batch", "coordination.k8s.io"}, o.Resource.Group))
}

// Wrap names the request that failed; From then explains why. Wrap(nil) is nil.
func (o Op) Wrap(err error) error {
	if err == nil {
		return nil
	}
	return &opError{op: o, err: err}
}

type opError struct {
	op  Op
	err error
}

func (e *opError) Error() string { return e.op.String() + ": " + e.err.Error() }

func (e *opError) Unwrap() error { return e.err }

// prefix is the operation with its separator, or nothing when the operation is unknown.
func (e *opError) prefix() string {
	if e.op.Verb == "" {
		return ""
	}
	return e.op.String() + ": "
}
