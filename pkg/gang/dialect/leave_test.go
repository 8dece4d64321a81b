package dialect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Pods that leave their gangs name none, however many dialects they were named in. Of a gang that only its pods declare there is another.
func TestLeave(t *testing.T) {
	native := labelled("scheduling.x-k8s.io/pod-group", "g")
	native.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("g")}
	several := labelled("scheduling.x-k8s.io/pod-group", "g", "pod-group.scheduling.sigs.k8s.io", "g", "pod-group.scheduling.sigs.k8s.io/name", "h", "pod-group.scheduling.x-k8s.io/name", "h",
		"pod-group.scheduling.x-k8s.io/min-available", "2", "team", "g")
	several.Annotations = map[string]string{"scheduling.k8s.io/group-name": "i", "pod-group-name": "i", "volcano.sh/task-spec": "i"}
	app := noted("yunikorn.apache.org/task-group-name", "workers")
	app.Labels = map[string]string{"applicationId": "g"}
	koordinator := labelled("pod-group.scheduling.sigs.k8s.io/name", "g", "pod-group.scheduling.sigs.k8s.io/min-available", "4", "scheduling.x-k8s.io/pod-group", "g")
	koordinator.Spec.SchedulerName = "koord-scheduler"
	for name, tt := range map[string]struct {
		pod                 *corev1.Pod
		labels, annotations map[string]string
		gang                string
	}{
		"native":            {pod: native},
		"several dialects":  {pod: several, labels: map[string]string{"team": "g"}, annotations: map[string]string{"volcano.sh/task-spec": "i"}},
		"labels":            {pod: labelled("pod-group.scheduling.sigs.k8s.io/name", "g", "pod-group.scheduling.sigs.k8s.io/min-available", "4")},
		"an application":    {pod: app, labels: map[string]string{"applicationId": "own-g"}, annotations: map[string]string{"yunikorn.apache.org/task-group-name": "workers"}, gang: "own-g"},
		"labels of another": {pod: koordinator, labels: map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "own-g", "pod-group.scheduling.sigs.k8s.io/min-available": "4"}, gang: "own-g"},
	} {
		template := &corev1.PodTemplateSpec{ObjectMeta: tt.pod.ObjectMeta, Spec: tt.pod.Spec}
		Leave(template, func(name string) string { return "own-" + name })
		orEmpty := func(m map[string]string) map[string]string {
			if m == nil {
				return map[string]string{}
			}
			return m
		}
		if diff := cmp.Diff(orEmpty(tt.labels), orEmpty(template.Labels)) + cmp.Diff(orEmpty(tt.annotations), orEmpty(template.Annotations)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
		key, ok := OfTemplate(&gang.Job{Roles: []gang.Role{{Template: *template}}})
		if ok != (tt.gang != "") || key.Name != tt.gang {
			t.Errorf("%s: its pods are in gang %+v", name, key)
		}
	}
}
