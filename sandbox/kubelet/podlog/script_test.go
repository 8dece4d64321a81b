package podlog

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func pod(role string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "p", Namespace: "ns", UID: "uid", Annotations: annotations,
		Labels: map[string]string{"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": "0"},
	}}
}

// texts collects a log, at most limit lines of it.
func texts(p *corev1.Pod, run Run, limit int) []string {
	var out []string
	for line := range Lines(p, run) {
		if out = append(out, line.Text); len(out) == limit {
			break
		}
	}
	return out
}

func TestLines(t *testing.T) {
	over := Run{Start: start, End: start.Add(20 * time.Second), Over: true}
	tests := []struct {
		name       string
		pod        *corev1.Pod
		run        Run
		lines      int
		last, some string
	}{
		{name: "success", pod: pod("worker", nil), run: over, lines: 14 + defaultSteps + 3, last: "----", some: "total images/sec: "},
		{name: "failure", pod: pod("worker", nil), run: Run{Start: start, End: start.Add(20 * time.Second), Over: true, ExitCode: 3}, lines: 14 + defaultSteps + 1, last: "exits with code 3", some: "200\timages/sec"},
		{name: "still running", pod: pod("worker", nil), run: Run{Start: start, End: start.Add(20 * time.Second)}, lines: 14 + defaultSteps, last: "200\timages/sec", some: "Done warm up"},
		{name: "endless", pod: pod("worker", nil), run: Run{Start: start}, lines: 500, last: "images/sec", some: "Done warm up"},
		{name: "parameter server", pod: pod("ps", nil), run: over, lines: 3, last: "Running parameter server 0", some: "TensorFlow"},
		{name: "number of steps", pod: pod("worker", map[string]string{LinesAnnotation: "2"}), run: over, lines: 14 + 2 + 3, last: "----", some: "20\timages/sec"},
		{name: "no steps", pod: pod("worker", map[string]string{LinesAnnotation: "0"}), run: Run{Start: start}, lines: 14, last: "Step\t", some: "Done warm up"},
		{name: "text", pod: pod("worker", map[string]string{LinesAnnotation: "one\ntwo\n"}), run: over, lines: 3, last: "two", some: "one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := texts(tt.pod, tt.run, 500)
			all := strings.Join(got, "\n")
			if len(got) != tt.lines || got[0] != firstLine || !strings.Contains(got[len(got)-1], tt.last) || !strings.Contains(all, tt.some) {
				t.Errorf("%d lines:\n%s", len(got), all)
			}
			if again := strings.Join(texts(tt.pod, tt.run, 500), "\n"); again != all {
				t.Error("the same run logs something else the next time")
			}
		})
	}
}

func TestLinesAreInOrder(t *testing.T) {
	run := Run{Start: start, End: start.Add(20 * time.Second), Over: true}
	last := start
	for line := range Lines(pod("worker", nil), run) {
		if line.Time.Before(last) || line.Time.After(run.End) {
			t.Errorf("%s %q comes after %s", line.Time, line.Text, last)
		}
		last = line.Time
	}
}

// A run that was cut short logged only what had fallen due.
func TestLinesOfACutRun(t *testing.T) {
	p := pod("worker", nil)
	short := texts(p, Run{Start: start, End: start.Add(time.Second), Over: true, ExitCode: 1}, 500)
	if len(short) > 14+defaultSteps+1 {
		t.Errorf("%d lines", len(short))
	}
}
