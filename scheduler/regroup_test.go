package scheduler

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func TestRegroup(t *testing.T) {
	pod := func(uid, group, node string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: node}}
		if group != "" {
			p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		}
		return p
	}
	tests := []struct {
		name          string
		before, after *corev1.Pod
		want          string
	}{
		{"nothing of it", pod("1", "a", ""), pod("1", "a", ""), "[update 1]"},
		{"bound", pod("1", "a", ""), pod("1", "a", "n1"), "[update 1]"},
		{"another gang", pod("1", "a", ""), pod("1", "b", ""), "[delete 1 add 1]"},
		{"into a gang", pod("1", "", ""), pod("1", "b", ""), "[delete 1 add 1]"},
		{"another pod of the name", pod("1", "a", ""), pod("2", "a", ""), "[delete 1 add 2]"},
		{"another gang, with a node already", pod("1", "a", "n1"), pod("1", "b", "n1"), "[update 1]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			name := func(obj any) string { return string(obj.(*corev1.Pod).UID) }
			regroup{cache.ResourceEventHandlerFuncs{
				AddFunc:    func(obj any) { got = append(got, "add "+name(obj)) },
				UpdateFunc: func(_, obj any) { got = append(got, "update "+name(obj)) },
				DeleteFunc: func(obj any) { got = append(got, "delete "+name(obj)) },
			}}.OnUpdate(tt.before, tt.after)
			if fmt.Sprint(got) != tt.want {
				t.Errorf("%v, want %s", got, tt.want)
			}
		})
	}
}
