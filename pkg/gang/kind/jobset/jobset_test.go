package jobset

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/gang"
)

// set is a JobSet with a body: what follows its metadata.
func set(t *testing.T, body string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: llama, namespace: team, uid: u}\n"+body), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func job(t *testing.T, body string) *gang.Job {
	t.Helper()
	j, err := Reader().Job(set(t, body))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func roles(j *gang.Job) string {
	var parts []string
	for _, r := range j.Roles {
		parts = append(parts, fmt.Sprintf("%s=%d/%d:%s", r.Name, r.Replicas, r.PartSize, r.Main))
	}
	return strings.Join(parts, " ")
}

// of is the template of Jobs with fields of their own.
func of(fields string) string {
	return "template: {spec: {" + fields + "template: {spec: {containers: [{name: main}, {name: log}]}}}}"
}

func TestRead(t *testing.T) {
	tests := map[string]struct{ body, roles, problem, sequential string }{
		"driver and workers": {roles: "driver=1/1:main workers=6/3:main",
			body: "spec: {replicatedJobs: [{name: driver, " + of("") + "}, {name: workers, replicas: 2, " + of("parallelism: 3, completions: 3, ") + "}]}"},
		"fewer to complete than at a time": {roles: "a=2/2:main", body: "spec: {replicatedJobs: [{name: a, " + of("parallelism: 4, completions: 2, ") + "}]}"},
		"more to complete than at a time":  {roles: "a=4/0:main", body: "spec: {replicatedJobs: [{name: a, " + of("parallelism: 4, completions: 9, ") + "}]}"},
		"without an index":                 {roles: "a=4/0:main", body: "spec: {replicatedJobs: [{name: a, " + of("parallelism: 4, completionMode: NonIndexed, ") + "}]}"},
		"nothing":                          {body: "spec: {}", problem: "spec.replicatedJobs is empty"},
		"no containers": {roles: "a=0/0:", problem: "containers definition expected in a",
			body: "spec: {replicatedJobs: [{name: a, template: {spec: {template: {spec: {}}}}}]}"},
		"without a name": {roles: "=0/0:", problem: "spec.replicatedJobs: one has no name", body: "spec: {replicatedJobs: [{" + of("") + "}]}"},
		"more than an int32 holds": {roles: "a=0/0:main", problem: "spec.replicatedJobs.a: 4611686014132420609 pods are more than a JobSet may have",
			body: "spec: {replicatedJobs: [{name: a, replicas: 2147483647, " + of("parallelism: 2147483647, ") + "}]}"},
		"less than nothing": {roles: "a=0/0:main", problem: "spec.replicatedJobs.a: replicas, parallelism and completions must be 0 or more",
			body: "spec: {replicatedJobs: [{name: a, replicas: -1, " + of("") + "}]}"},
		"a name twice": {roles: "a=1/1:main", problem: `spec.replicatedJobs has two of the name "a"`,
			body: "spec: {replicatedJobs: [{name: a, " + of("") + "}, {name: a, " + of("") + "}]}"},
		"in order": {roles: "a=1/1:main b=1/1:main", sequential: "its replicated jobs start one after the other, b after a (startupPolicyOrder: InOrder)",
			body: "spec: {startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: a, " + of("") + "}, {name: b, " + of("") + "}]}"},
		"in order, and there is one": {roles: "a=1/1:main b=0/1:main",
			body: "spec: {startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: a, " + of("") + "}, {name: b, replicas: 0, " + of("") + "}]}"},
		"one depends on another": {roles: "a=1/1:main b=1/1:main", sequential: "its replicated job b starts only after a (dependsOn)",
			body: "spec: {replicatedJobs: [{name: a, " + of("") + "}, {name: b, dependsOn: [{name: a, status: Ready}], " + of("") + "}]}"},
		"a rack for each Job": {roles: "a=4/2:main", sequential: "the other pods of a Job of a are made only when its first has a node (annotation alpha.jobset.sigs.k8s.io/exclusive-topology)",
			body: "spec: {replicatedJobs: [{name: a, replicas: 2, template: {metadata: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}, spec: {parallelism: 2, template: {spec: {containers: [{name: main}]}}}}}]}"},
		"a rack for each Job, on labelled nodes": {roles: "a=4/2:main",
			body: "spec: {replicatedJobs: [{name: a, replicas: 2, template: {metadata: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack, alpha.jobset.sigs.k8s.io/node-selector: \"true\"}}, spec: {parallelism: 2, template: {spec: {containers: [{name: main}]}}}}}]}"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := job(t, tt.body)
			if got := roles(j); got != tt.roles {
				t.Errorf("roles: got %q, want %q", got, tt.roles)
			}
			if got := strings.Join(j.Problems, "; "); got != tt.problem || j.Sequential != tt.sequential {
				t.Errorf("got problem %q, sequential %q", got, j.Sequential)
			}
		})
	}
	if _, err := Reader().Job(set(t, "spec: {replicatedJobs: many}")); err == nil || !strings.Contains(err.Error(), "read JobSet team/llama: decode spec: ") {
		t.Errorf("got %v", err)
	}
}

const two = "spec: {suspend: true, replicatedJobs: [{name: driver, template: {spec: {template: {spec: {containers: [{name: main}]}}}}}, " +
	"{name: workers, replicas: 2, template: {spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: main}]}}}}}]}\n"

func TestStatus(t *testing.T) {
	if j := job(t, two); !j.Suspended || j.Seen || j.End != nil {
		t.Errorf("got %+v", j)
	}
	for kind, failed := range map[string]bool{"Completed": false, "Failed": true} {
		j := job(t, two+`status: {conditions: [{type: Suspended, status: "True"}, {type: `+kind+`, status: "True", reason: R, message: m, lastTransitionTime: "2026-11-21T12:00:00Z"}]}`)
		if !j.Seen || j.End == nil || j.End.Failed != failed || j.End.Message != "m" || j.End.At.Hour() != 12 {
			t.Errorf("%s: got %+v", kind, j.End)
		}
	}
	if j := job(t, two+"status: {replicatedJobsStatus: [{name: driver, active: 1}]}"); !j.Seen || j.End != nil {
		t.Errorf("got %+v", j)
	}
}

// pod is one of a Job, with the labels that the controller writes; empty ones are left out.
func pod(name, uid, role, number, index, part string) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, Labels: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: part, UID: types.UID(part), Controller: &yes}}}}
	for key, value := range map[string]string{NameLabel: "llama", uidLabel: uid, roleLabel: role, indexLabel: number, "batch.kubernetes.io/job-completion-index": index} {
		if value != "" {
			p.Labels[key] = value
		}
	}
	return p
}

func TestOwns(t *testing.T) {
	j := job(t, two)
	volcano := pod("p", "u", "workers", "1", "0", "llama-workers-1")
	volcano.OwnerReferences[0].APIVersion = "batch.volcano.sh/v1alpha1"
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"its own":                    {pod("p", "u", "workers", "1", "0", "llama-workers-1"), true},
		"of an old release":          {pod("p", "", "workers", "1", "0", "llama-workers-1"), true},
		"of a JobSet before it":      {pod("p", "old", "workers", "1", "0", "llama-workers-1"), false},
		"of a Job of somebody else":  {pod("p", "", "workers", "1", "0", "other"), false},
		"of a Job of Volcano":        {volcano, false},
		"of a Job that names no set": {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", OwnerReferences: pod("p", "", "", "", "", "llama-workers-1").OwnerReferences}}, false},
	} {
		if got := j.Owns(tt.pod); got != tt.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// Members are the pods of all Jobs, in the order of the Jobs; a pod that only its role is known of takes the place of one of its role.
func TestMembers(t *testing.T) {
	j := job(t, two)
	members, _ := gang.Assemble(j, []*corev1.Pod{
		pod("w10", "u", "workers", "1", "0", "llama-workers-1"), pod("w01", "u", "workers", "0", "1", "llama-workers-0"), pod("d", "u", "driver", "0", "0", "llama-driver-0"),
		pod("loose", "u", "workers", "1", "", "llama-workers-1"), pod("beyond", "u", "workers", "0", "7", "llama-workers-0"),
	}, nil)
	var got []string
	for _, m := range members {
		name := "-"
		if m.Pod != nil {
			name = m.Pod.Name
		}
		got = append(got, m.Name()+"="+name)
	}
	if want := "driver-0=d workers-0=beyond workers-1=w01 workers-2=w10 workers-3=loose"; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if got := Reader().Labels(j, gang.RoleIndex{Role: "workers", Index: 3}); got[indexLabel] != "1" || got["job-name"] != "llama-workers-1" {
		t.Errorf("got %v", got)
	}
}

// What is written is read again, as far as a JobSet can have it.
// How much there is to do stays, unless each pod has a place of its own.
func TestWriteRolesKeepsTheWork(t *testing.T) {
	for _, tt := range []struct {
		parallelism, completions, members int64
		want                              int64
	}{{4, 8, 2, 8}, {4, 4, 2, 2}, {4, 8, 9, 9}, {8, 4, 2, 4}} {
		u := set(t, two)
		list, _, _ := unstructured.NestedSlice(u.Object, "spec", "replicatedJobs")
		spec := list[0].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		spec["parallelism"], spec["completions"] = tt.parallelism, tt.completions
		if err := unstructured.SetNestedSlice(u.Object, list, "spec", "replicatedJobs"); err != nil {
			t.Fatal(err)
		}
		j, err := Reader().Job(u)
		if err != nil {
			t.Fatal(err)
		}
		j.Roles[0].Replicas = int32(tt.members)
		writeRoles(u, j.Roles)
		list, _, _ = unstructured.NestedSlice(u.Object, "spec", "replicatedJobs")
		got, _, _ := unstructured.NestedInt64(list[0].(map[string]any), "template", "spec", "completions")
		if again, err := Reader().Job(u); err != nil || got != tt.want || again.Roles[0].Replicas != int32(tt.members) {
			t.Errorf("%+v: %d completions, %d members", tt, got, again.Roles[0].Replicas)
		}
	}
}

func TestWriteRoles(t *testing.T) {
	for name, tt := range map[string]struct {
		change func([]gang.Role)
		want   string
	}{
		"fewer Jobs":        {func(r []gang.Role) { r[1].Replicas = 2 }, "driver=1/1:main workers=2/2:main"},
		"no number of Jobs": {func(r []gang.Role) { r[1].Replicas = 3 }, "driver=1/1:main workers=4/2:main"},
		"a larger Job":      {func(r []gang.Role) { r[0].Replicas = 3 }, "driver=3/3:main workers=4/2:main"},
		"another container": {func(r []gang.Role) { r[0].Template.Spec.Containers[0].Name = "x" }, "driver=1/1:x workers=4/2:main"},
	} {
		u := set(t, two)
		j, err := Reader().Job(u)
		if err != nil {
			t.Fatal(err)
		}
		tt.change(j.Roles)
		writeRoles(u, j.Roles)
		again, err := Reader().Job(u)
		if err != nil {
			t.Fatal(err)
		}
		if got := roles(again); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}
