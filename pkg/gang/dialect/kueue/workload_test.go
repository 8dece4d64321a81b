package kueue

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func workload(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// A Workload that something has set aside waits in no line.
func TestQueued(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true,
		`{spec: {active: true}, status: {conditions: [{type: QuotaReserved, status: "False", reason: Pending}]}}`: true,
		`{spec: {active: false}}`:                                                          false,
		`{status: {admission: {clusterQueue: q}}}`:                                         false,
		`{status: {conditions: [{type: Finished, status: "True"}]}}`:                       false,
		`{status: {conditions: [{type: Requeued, status: "False"}]}}`:                      false,
		`{status: {conditions: [{type: Requeued, status: "True"}]}}`:                       true,
		`{status: {conditions: [{type: WaitingForReplacementPods, status: "True"}]}}`:      false,
		`{status: {conditions: [{type: QuotaReserved, status: "False", reason: OnHold}]}}`: false,
		`{status: {requeueState: {count: 1, requeueAt: "2026-11-21T12:01:00Z"}}}`:          false,
		`{status: {requeueState: {count: 1, requeueAt: "2026-11-21T11:59:00Z"}}}`:          true,
		`{metadata: {annotations: {kueue.x-k8s.io/admission-gated-by: budget}}}`:           false,
		`{metadata: {deletionTimestamp: "2026-11-21T11:59:00Z"}}`:                          false,
	} {
		if got := Queued(workload(t, text), noon); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

// One that was put back, as its pods were not ready or a check requested that, is behind those that were made meanwhile; one that was preempted keeps its place.
func TestQueuedSince(t *testing.T) {
	for reason, want := range map[string]string{"": "10:00", "PodsReadyTimeout": "11:00", "AdmissionCheck": "11:00", "Preempted": "10:00"} {
		u := workload(t, `{metadata: {creationTimestamp: "2026-11-21T10:00:00Z"}, status: {conditions: [{type: Evicted, status: "True", reason: "`+reason+`", lastTransitionTime: "2026-11-21T11:00:00Z"}]}}`)
		if got := QueuedSince(u).Format("15:04"); got != want {
			t.Errorf("%q: got %s, want %s", reason, got, want)
		}
	}
}

func TestSwitchedOffFor(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "",
		`{status: {conditions: [{type: Evicted, status: "True", reason: Deactivated}]}}`:                       "",
		`{status: {conditions: [{type: Evicted, status: "True", reason: DeactivatedDueToAdmissionCheck}]}}`:    "AdmissionCheck",
		`{status: {conditions: [{type: Evicted, status: "False", reason: DeactivatedDueToAdmissionCheck}]}}`:   "",
		`{status: {conditions: [{type: DeactivationTarget, status: "True", reason: RequeuingLimitExceeded}]}}`: "RequeuingLimitExceeded",
	} {
		cause, _, ok := SwitchedOffFor(workload(t, text))
		if ok != (want != "") || ok && cause != want {
			t.Errorf("%s: got %q %v", text, cause, ok)
		}
	}
}

// What state a check had is read where Kueue has it made again after an eviction.
func TestChecksOf(t *testing.T) {
	all := ChecksOf(workload(t, `{status: {admissionChecks: [
		{name: a, state: Retry, message: no room, lastTransitionTime: "2026-11-21T11:00:00Z", requeueAfterSeconds: 60},
		{name: b, state: Pending, message: "Reset to Pending after eviction. Previously: Rejected"},
		{name: c, state: Pending, message: waits}]}}`))
	if len(all) != 3 || all[0].Last() != CheckRetry || all[0].After != time.Minute || all[0].At.Hour() != 11 {
		t.Fatalf("got %+v", all)
	}
	if all[1].Last() != CheckRejected || all[1].State != CheckPending || all[1].Message != "" || all[2].Last() != CheckPending || all[2].Message != "waits" {
		t.Errorf("got %+v", all)
	}
}
