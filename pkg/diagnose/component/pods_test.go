package component

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
)

func TestLog(t *testing.T) {
	up := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "plugin", Ready: true}}}
	crashed := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "plugin", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}}
	beginning := corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "toolkit-validation", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "plugin", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}}}
	beside := crashed.DeepCopy()
	beside.ContainerStatuses = append([]corev1.ContainerStatus{{Name: "sidecar", Ready: true, RestartCount: 1}}, beside.ContainerStatuses...)
	for name, test := range map[string]struct {
		pods          []corev1.PodStatus
		want, waiting string
	}{
		"no pod is seen":                       {nil, "logs daemonset/plugin --tail=50", ""},
		"none was restarted":                   {[]corev1.PodStatus{up, up}, "logs daemonset/plugin --tail=50", ""},
		"each was restarted":                   {[]corev1.PodStatus{crashed, crashed}, "logs daemonset/plugin -c plugin --previous --tail=50", "2 pods of it: CrashLoopBackOff"},
		"another container was restarted once": {[]corev1.PodStatus{*beside}, "logs daemonset/plugin -c plugin --previous --tail=50", "1 pod of it: CrashLoopBackOff"},
		"some were restarted":                  {[]corev1.PodStatus{up, crashed}, "logs daemonset/plugin -c plugin --tail=50", "1 pod of it: CrashLoopBackOff"},
		"they wait for an init container":      {[]corev1.PodStatus{beginning, beginning}, "logs daemonset/plugin -c toolkit-validation --tail=50", "2 pods of it: init container toolkit-validation has not ended"},
	} {
		c, labels := clustertest.New(), map[string]string{"app": "plugin"}
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: "plugin"}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}}
		for i, status := range test.pods {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "gpu-operator", Name: fmt.Sprint("plugin-", i), Labels: labels}, Status: status}
			pod.Spec.InitContainers, pod.Spec.Containers = []corev1.Container{{Name: "toolkit-validation"}}, []corev1.Container{{Name: "plugin"}}
			c.Put(pod)
		}
		v := view.New(c.Done())
		if got := Log(v, "daemonset", d, d.Spec.Selector); got != "kubectl -n gpu-operator "+test.want {
			t.Errorf("%s: got %s", name, got)
		}
		if got := strings.Join(WaitingReasons(PodsOf(v, d)), ", "); got != test.waiting {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
