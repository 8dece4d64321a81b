package members

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type change func(*corev1.Pod)

func pod(job, role, index string, changes ...change) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: job + "-" + role + "-" + index, Labels: map[string]string{JobLabel: job, RoleLabel: role, indexLabel: index}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "tensorflow"}}},
	}
	for _, c := range changes {
		c(&p)
	}
	return p
}

func gpus(n string) change {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(n)}
	}
}

func refused(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no room"}}
}

func placed(p *corev1.Pod) { p.Spec.NodeName = "node-1" }

func phase(phase corev1.PodPhase) change {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func deleted(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }

func TestOf(t *testing.T) {
	s := Of([]corev1.Pod{
		pod("b", "worker", "10", gpus("2"), placed),
		pod("b", "worker", "2", gpus("2"), placed, phase(corev1.PodRunning)),
		pod("b", "ps", "0", refused),
		pod("a", "worker", "0"),
		pod("b", "worker", "3", deleted),
		pod("c", "worker", "0", placed, phase(corev1.PodSucceeded), gpus("8")),
		{ObjectMeta: metav1.ObjectMeta{Name: "somebody-elses"}},
	})
	const want = "a-worker-0 Undecided, b-ps-0 Pending, b-worker-2 Running, b-worker-10 Starting, c-worker-0 Ended"
	if got := s.String(); got != want {
		t.Errorf("members\n%s, want\n%s", got, want)
	}
	if got := s.Held(); got != 4 {
		t.Errorf("%d GPUs held, want 4", got)
	}
	if got := s.Job("b").Job("b").String(); strings.Contains(got, "a-worker") || !strings.Contains(got, "b-ps-0") {
		t.Errorf("job b is %s", got)
	}
	if got := s.Job("b")[0].Reason; got != "no room" {
		t.Errorf("reason %q, want the scheduler's", got)
	}
}

func TestDecidedAndPartial(t *testing.T) {
	running := []change{placed, phase(corev1.PodRunning)}
	tests := []struct {
		name             string
		pods             []corev1.Pod
		decided, partial bool
	}{
		{"a pod is not there yet", []corev1.Pod{pod("a", "worker", "0", running...)}, false, false},
		{"a pod is undecided", []corev1.Pod{pod("a", "worker", "0", running...), pod("a", "worker", "1")}, false, true},
		{"a pod starts", []corev1.Pod{pod("a", "worker", "0", running...), pod("a", "worker", "1", placed)}, false, false},
		{"all run", []corev1.Pod{pod("a", "worker", "0", running...), pod("a", "worker", "1", running...)}, true, false},
		{"all wait", []corev1.Pod{pod("a", "worker", "0", refused), pod("a", "worker", "1", refused)}, true, false},
		{"half of it", []corev1.Pod{pod("a", "worker", "0", running...), pod("a", "worker", "1", refused)}, true, true},
		{"one has ended", []corev1.Pod{pod("a", "worker", "0", running...), pod("a", "worker", "1", placed, phase(corev1.PodSucceeded))}, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Of(tt.pods)
			if got := s.Decided(2); got != tt.decided {
				t.Errorf("Decided = %v, want %v", got, tt.decided)
			}
			if got := s.Partial(); got != tt.partial {
				t.Errorf("Partial = %v, want %v", got, tt.partial)
			}
		})
	}
}
