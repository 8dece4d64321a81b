package kubelet

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// The stages are KWOK's to interpret: the test has KWOK compute which one comes next.
func TestStages(t *testing.T) {
	all, err := stages("gangctl")
	if err != nil {
		t.Fatal(err)
	}
	machine := func(kind string) lifecycle.Lifecycle {
		lc, err := lifecycle.NewLifecycle(all[internalversion.StageResourceRef{APIGroup: "v1", Kind: kind}])
		if err != nil {
			t.Fatal(err)
		}
		return lc
	}
	pods, nodes := machine("Pod"), machine("Node")
	pod := func(phase corev1.PodPhase, endsAt string, deleted bool) *corev1.Pod {
		p := podWith(map[string]string{}, nil)
		p.Status.Phase = phase
		if endsAt != "" {
			p.Annotations[EndsAtAnnotation] = endsAt
		}
		if deleted {
			p.DeletionTimestamp = &metav1.Time{Time: now}
		}
		return p
	}
	process := pod(corev1.PodPending, "", false)
	process.Spec.Containers[0].Image = "example.com/gangctl:v1"
	realGone := pod(corev1.PodRunning, "2026-01-02T03:04:15Z", true)
	realGone.Spec.Containers[0].Image = "gangctl"
	node := func(ready corev1.ConditionStatus) *corev1.Node {
		n := &corev1.Node{}
		if ready != "" {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		}
		return n
	}
	tests := []struct {
		name    string
		machine lifecycle.Lifecycle
		object  any
		want    string
		delay   time.Duration
	}{
		{name: "bound", machine: pods, object: pod(corev1.PodPending, "", false), want: "pod-start"},
		{name: "running with an end", machine: pods, object: pod(corev1.PodRunning, "2026-01-02T03:04:15Z", false), want: "pod-end", delay: 10 * time.Second},
		{name: "running for ever", machine: pods, object: pod(corev1.PodRunning, "", false)},
		{name: "over", machine: pods, object: pod(corev1.PodSucceeded, "2026-01-02T03:04:15Z", false)},
		{name: "deleted", machine: pods, object: pod(corev1.PodRunning, "2026-01-02T03:04:15Z", true), want: "pod-delete", delay: 200 * time.Millisecond},
		{name: "deleted before it ran", machine: pods, object: pod(corev1.PodPending, "", true), want: "pod-delete", delay: 200 * time.Millisecond},
		{name: "runs for real", machine: pods, object: process},
		{name: "runs for real, deleted", machine: pods, object: realGone},
		{name: "new node", machine: nodes, object: node(""), want: "node-ready"},
		{name: "recovered node", machine: nodes, object: node(corev1.ConditionUnknown), want: "node-ready"},
		{name: "healthy node", machine: nodes, object: node(corev1.ConditionTrue)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			event := &lifecycle.Event{Data: tt.object}
			stage, err := tt.machine.Match(context.Background(), event)
			if err != nil {
				t.Fatal(err)
			}
			if stage == nil {
				if tt.want != "" {
					t.Errorf("nothing comes next, want %s", tt.want)
				}
				return
			}
			delay, _, err := stage.Delay(context.Background(), event, now)
			if stage.Name() != tt.want || delay != tt.delay || err != nil {
				t.Errorf("got %s after %s (%v), want %s after %s", stage.Name(), delay, err, tt.want, tt.delay)
			}
		})
	}
}

// The templates of the stages render to patches of the right shape.
func TestTemplates(t *testing.T) {
	all, err := stages("gangctl")
	if err != nil {
		t.Fatal(err)
	}
	alive := true
	functions := templates{behaviour: behaviour, clock: clocktesting.NewFakePassiveClock(now), alive: func(string) bool { return alive }}.functions()
	functions["PodIPWith"] = func(string, bool, string, string, string) string { return "10.0.0.9" }
	renderer := gotpl.NewRenderer(functions)
	seen := podWith(nil, nil)
	seen.ResourceVersion = "7"
	objects := map[string]any{"pod-start": seen, "pod-end": seen, "node-ready": &corev1.Node{}}
	for _, group := range all {
		for _, stage := range group {
			object, ok := objects[stage.Name]
			if !ok {
				continue
			}
			delete(objects, stage.Name)
			data, err := renderer.ToJSON(stage.Spec.Steps[0].Patch.Template, object)
			if err != nil {
				t.Errorf("%s: %v", stage.Name, err)
				continue
			}
			var got struct {
				Metadata patchMeta
				Status   map[string]any
			}
			if err := json.Unmarshal(data, &got); err != nil || len(got.Status) == 0 {
				t.Errorf("%s: %v: %s", stage.Name, err, data)
			}
			if strings.HasPrefix(stage.Name, "pod-") && got.Metadata.ResourceVersion != "7" {
				t.Errorf("%s changes any pod of that name: %s", stage.Name, data)
			}
			if stage.Name == "pod-start" && got.Status["podIP"] != "10.0.0.9" {
				t.Errorf("pod IP: %s", data)
			}
		}
	}
	if len(objects) > 0 {
		t.Errorf("stages are missing: %v", objects)
	}
	alive = false
	if _, err := renderer.ToJSON("{{ PodEnded . }}", podWith(nil, nil)); err == nil || !strings.Contains(err.Error(), "has failed") {
		t.Errorf("a pod on a dead node moves on: %v", err)
	}
}
