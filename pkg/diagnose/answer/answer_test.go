package answer

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func full() Answer {
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	yes := true
	f := Finding{Code: Fragmented, Stage: StagePlacement, Verdict: Waiting, Who: Nobody, Message: "m", Details: []string{"d"}, Facts: map[string]any{"a": "b"},
		Evidence: []Evidence{{Ref: "v1/Node/n1", Path: ".status", RV: "1"}}, Since: &at, Commands: []string{"c"}}
	return Answer{
		APIVersion: APIVersion, Job: Job{Kind: "TFJob", Namespace: "team", Name: "gang", UID: "u", Created: &at}, Verdict: Waiting, Who: Nobody, Exit: ExitWaiting,
		Headline: "h", Primary: &f, AlsoBlocking: []Finding{f}, Stages: []StageState{{StagePlacement, StateWaiting, "0/2"}},
		Gang: Gang{Dialect: "volcano", MinMember: 2, Roles: []Role{{Name: "Worker", Replicas: 2, Request: corev1.ResourceList{"cpu": resource.MustParse("8")}}}},
		Nodes: &Nodes{Total: 1, Excluded: []Excluded{{Role: "Worker", Constraint: "taint", Nodes: []string{"n1"}}}, Slots: []Slot{{Nodes: []string{"n1"}, Fits: map[string]int64{"Worker": 1}}},
			Rows: []NodeRow{{Node: "n1", Role: "Worker", Violations: []Violation{{Constraint: "taint", Never: true}}}}},
		Placement: []Placed{{"worker-0", "n1"}}, Ahead: []Ahead{{Job: "team/first", Reason: "fifo"}},
		Unblock: []Action{{Kind: Wait, Change: map[string]any{"count": float64(1)}, Text: "t", Cost: "c", Verified: true, By: Nobody, Command: "c", How: "h", Nodes: []string{"n1"}, ETA: &at, ETASource: "s",
			Placement: []Placed{{"worker-0", "n1"}}}},
		Cut: []ActionKind{Evict}, Holding: Holding{GPUs: 8, Since: &at}, Scheduler: &Scheduler{Name: "gang", Message: "no", MessageAt: &at, Agrees: &yes, Stale: true},
		Confidence: Confidence{Level: Exact, Unmodelled: []string{"x"}, MissingPermissions: []string{"y"}}, Notes: []string{"n"}, Snapshot: SnapshotStamp{RV: "7", At: &at},
	}
}

// What programs read is what was meant: nothing is lost on the way, and every field has a name in lower camel case.
func TestJSON(t *testing.T) {
	want := full()
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Answer
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(raw) {
		t.Errorf("got  %s\nwant %s", again, raw)
	}
	names(t, reflect.TypeFor[Answer](), map[reflect.Type]bool{})
}

func names(t *testing.T, kind reflect.Type, seen map[reflect.Type]bool) {
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	if kind.Kind() != reflect.Struct || seen[kind] || kind.PkgPath() != reflect.TypeFor[Answer]().PkgPath() {
		return
	}
	seen[kind] = true
	for i := range kind.NumField() {
		f := kind.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || strings.ToLower(name[:1]) != name[:1] {
			t.Errorf("%s.%s is called %q", kind.Name(), f.Name, name)
		}
		names(t, f.Type, seen)
	}
}

// Lists that programs go through are there even if they are empty.
func TestEmptyLists(t *testing.T) {
	raw, err := json.Marshal(Answer{AlsoBlocking: []Finding{}, Stages: []StageState{}, Unblock: []Action{}, Gang: Gang{Roles: []Role{}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"alsoBlocking":[]`, `"stages":[]`, `"unblock":[]`, `"roles":[]`, `"primary":null`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("lacks %s: %s", want, raw)
		}
	}
	for _, not := range []string{`"cut"`, `"ahead"`, `"notes"`, `"eta"`} {
		if strings.Contains(string(raw), not) {
			t.Errorf("has %s: %s", not, raw)
		}
	}
}

func TestEvidenceNamespace(t *testing.T) {
	for ref, want := range map[string]string{
		"v1/Node/n1": "", "v1/Pod/team/a-0": "team", "apps/v1/Deployment/kubeflow/training-operator": "kubeflow", "v1/Event/team": "",
		"kueue.x-k8s.io/v1beta1/ClusterQueue/all": "", "": "", "scheduling.volcano.sh/v1beta1/PodGroup/b/c": "b",
	} {
		if got := (Evidence{Ref: ref}).Namespace(); got != want {
			t.Errorf("%q is in %q, want %q", ref, got, want)
		}
	}
}
