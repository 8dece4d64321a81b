package labels

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMarkIsReadBack(t *testing.T) {
	pod := &corev1.Pod{}
	if name, ok := NameOf(pod); ok {
		t.Errorf("NameOf(unmarked) = %q, want none", name)
	}
	SetGroup(&pod.ObjectMeta, "llama", 5)
	name, ok := NameOf(pod)
	minAvailable, err := MinAvailable(pod)
	if !ok || name != "llama" || minAvailable != 5 || err != nil {
		t.Errorf("read back %q, %v, %d, %v, want llama and 5", name, ok, minAvailable, err)
	}
}

func TestBothSpellings(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		"pod-group.scheduling.x-k8s.io/name": "llama", "pod-group.scheduling.x-k8s.io/min-available": "3",
	}}}
	name, ok := NameOf(pod)
	minAvailable, err := MinAvailable(pod)
	if !ok || name != "llama" || minAvailable != 3 || err != nil {
		t.Errorf("got %q, %v, %d, %v, want llama and 3", name, ok, minAvailable, err)
	}
}

func TestMinAvailableRefuses(t *testing.T) {
	for _, value := range []string{"", "0", "-1", "five", "2.5", "99999999999"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{MinAvailableLabel: value}}}
		got, err := MinAvailable(pod)
		if err == nil {
			t.Errorf("MinAvailable(%q) = %d, want an error", value, got)
			continue
		}
		if !strings.Contains(err.Error(), MinAvailableLabel) {
			t.Errorf("MinAvailable(%q): %v: does not name the label", value, err)
		}
	}
}

func FuzzMinAvailable(f *testing.F) {
	f.Add("5")
	f.Add(" 5")
	f.Add("0x5")
	f.Fuzz(func(t *testing.T, value string) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{MinAvailableLabel: value}}}
		got, err := MinAvailable(pod)
		if err != nil {
			return
		}
		if n, parseErr := strconv.Atoi(value); parseErr != nil || n != int(got) || got < 1 {
			t.Errorf("MinAvailable(%q) = %d", value, got)
		}
	})
}
