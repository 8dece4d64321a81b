package kubelet

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func podWith(annotations, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "uid", Annotations: annotations, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName:      "node-1",
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "a", Image: "i"}, {Name: "b", Image: "i"}},
		},
	}
}

func TestLifespan(t *testing.T) {
	ps := map[string]string{replicaTypeLabel: "ps"}
	tests := []struct {
		name        string
		annotations map[string]string
		labels      map[string]string
		want        time.Duration
		err         string
	}{
		{name: "as usual", want: 30 * time.Second},
		{name: "worker", labels: map[string]string{replicaTypeLabel: "worker"}, want: 30 * time.Second},
		{name: "parameter server", labels: ps, want: 0},
		{name: "parameter server that says otherwise", labels: ps, annotations: map[string]string{RunForAnnotation: "5s"}, want: 5 * time.Second},
		{name: "for ever", annotations: map[string]string{RunForAnnotation: "0"}, want: 0},
		{name: "no duration", annotations: map[string]string{RunForAnnotation: "10"}, err: `"10" is not a duration`},
		{name: "negative", annotations: map[string]string{RunForAnnotation: "-1s"}, err: `"-1s" is not a duration`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Behaviour{RunFor: 30 * time.Second}.lifespan(podWith(tt.annotations, tt.labels))
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	code := func(text string) (int32, error) {
		return Behaviour{}.exitCode(podWith(map[string]string{ExitCodeAnnotation: text}, nil), 0)
	}
	if got, err := code("137"); got != 137 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	for _, bad := range []string{"", "256", "-1", "one"} {
		if _, err := code(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// The share of pods that fail is the one requested, and the same pods each time.
func TestFailRate(t *testing.T) {
	const pods = 4000
	for _, rate := range []float64{0, 0.25, 1} {
		failed := 0
		for i := range pods {
			p := podWith(nil, nil)
			p.UID = types.UID(fmt.Sprintf("5c1c0b3e-0000-4000-8000-%012d", i))
			a, err := Behaviour{FailRate: rate}.exitCode(p, 0)
			b, _ := Behaviour{FailRate: rate}.exitCode(p, 0)
			if err != nil || a != b {
				t.Fatalf("pod %d: %d, %d, %v", i, a, b, err)
			}
			failed += int(a)
		}
		if got := float64(failed) / pods; math.Abs(got-rate) > 0.03 {
			t.Errorf("rate %v: %v of the pods fail", rate, got)
		}
	}
}

// An unlucky pod that is restarted has another chance.
func TestRestartIsAnotherChance(t *testing.T) {
	seen := map[int32]bool{}
	for restarts := range int32(50) {
		code, _ := Behaviour{FailRate: 0.5}.exitCode(podWith(nil, nil), restarts)
		seen[code] = true
	}
	if !seen[0] || !seen[1] {
		t.Errorf("got only %v", seen)
	}
}
