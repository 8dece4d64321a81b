package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/gangctl/gangctl/pkg/gang/dialect/labels"
	"github.com/gangctl/gangctl/sandbox/demo"
)

// TestNoSecretIsLogged has the scheduler schedule, refuse, suspend and explain what holds a secret, LEAK, in each place that can: nothing of it
// is in its log, whose readers are others than those of the objects. The log is text: there is no other format.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	stage := newStage(t, demo.Scheduler{Title: "a scheduler of the test's own", Name: "none"})
	must(t, stage.AddNodes(t.Context(), 2, 2))
	evil := newTenant(t, stage, "leaky")
	evil.keepSecrets(t)
	for _, verbosity := range []string{"0", "4"} {
		t.Run("-v="+verbosity, func(t *testing.T) {
			sched := startScheduler(t, stage.DataDir, nil, nil, "-v", verbosity)
			runs, waits := "runs-"+verbosity, "waits-"+verbosity
			evil.run(t, secretive(runs+"-0", runs, "1"), secretive(runs+"-1", runs, "1"), secretive(waits+"-0", waits, "1"), secretive(waits+"-1", waits, "4000"))
			eventually(t, "one gang has nodes, and the other is refused", func(ctx context.Context) bool {
				p, err := evil.client.CoreV1().Pods(evil.namespace).Get(ctx, runs+"-1", metav1.GetOptions{})
				if err != nil || p.Spec.NodeName == "" {
					return false
				}
				p, err = evil.client.CoreV1().Pods(evil.namespace).Get(ctx, waits+"-1", metav1.GetOptions{})
				return err == nil && strings.Contains(conditionOf(p), "Unschedulable")
			})
			eventually(t, "it is explained", func(ctx context.Context) bool {
				events, err := evil.client.CoreV1().Events(evil.namespace).List(ctx, metav1.ListOptions{})
				return err == nil && strings.Contains(describeEvents(events), waits)
			})
			sched.stop()
			log := sched.output.String()
			for line := range strings.Lines(log) {
				if strings.Contains(line, "LEAK") {
					t.Errorf("it is logged: %s", line)
				}
			}
			if verbosity == "4" && !strings.Contains(log, runs) {
				t.Errorf("the log is not about what was scheduled:\n%s", log)
			}
		})
	}
}

func describeEvents(events *corev1.EventList) (text string) {
	for i := range events.Items {
		text += events.Items[i].InvolvedObject.Name + " " + events.Items[i].Message + "\n"
	}
	return text
}

// secretive is a member that holds a secret wherever a pod can.
func secretive(name, gang, cpu string) *corev1.Pod {
	p := pod(name, func(meta *metav1.ObjectMeta) { labels.SetGroup(meta, gang, 2) })
	p.Annotations = map[string]string{"example.com/api-token": "LEAK-annotation", "kubectl.kubernetes.io/last-applied-configuration": `{"a":"LEAK-applied"}`,
		"gangctl.dev/command": "gangctl submit tf a --env A=LEAK-command", "gangctl.dev/expected-runtime": "token=LEAK-runtime"}
	c := &p.Spec.Containers[0]
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	c.Env = []corev1.EnvVar{{Name: "A", Value: "LEAK-env"}}
	c.Command, c.Args = []string{"run", "--password", "LEAK-command"}, []string{"--token=LEAK-args"}
	c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(1), HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: "LEAK-header"}}}}}
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d.example", VolumeAttributes: map[string]string{"password": "LEAK-volume"}}}}}
	return p
}

// keepSecrets makes objects around pods: a job whose pods nobody makes, an event, a Secret and a ConfigMap.
func (e tenant) keepSecrets(t *testing.T) {
	t.Helper()
	ctx, core := t.Context(), e.client.CoreV1()
	_, err := core.Secrets(e.namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"k": "LEAK-secret"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.ConfigMaps(e.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"k": "LEAK-config"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.Events(e.namespace).Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e"}, Message: "token=LEAK-event", Type: corev1.EventTypeWarning, Reason: "Failed",
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: e.namespace, Name: "waits-0"}}, metav1.CreateOptions{})
	must(t, err)
	job := map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": map[string]any{"name": "keeps", "annotations": map[string]any{
		"gangctl.dev/command": "gangctl submit tf keeps --env A=LEAK-job-command", "gangctl.dev/suspended-because": "token=LEAK-because"}},
		"spec": map[string]any{"runPolicy": map[string]any{"suspend": true}, "tfReplicaSpecs": map[string]any{"Worker": map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{
			"schedulerName": "gang-scheduler", "containers": []any{map[string]any{"name": "tensorflow", "image": "x", "env": []any{map[string]any{"name": "A", "value": "LEAK-job-env"}}}}}}}}}}
	_, err = e.dynamic.Resource(tfJobs()).Namespace(e.namespace).Create(ctx, &unstructured.Unstructured{Object: job}, metav1.CreateOptions{})
	must(t, err)
}
