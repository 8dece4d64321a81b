package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/describe"
	"github.com/gangctl/gangctl/pkg/cmd/events"
	"github.com/gangctl/gangctl/pkg/cmd/list"
	"github.com/gangctl/gangctl/pkg/cmd/top"
	"github.com/gangctl/gangctl/pkg/cmd/whypending"
	"github.com/gangctl/gangctl/pkg/diagnose"
)

// places are objects with a secret, LEAK and the name of the place, in each place that can hold one.
const places = `
apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: llama
  namespace: team
  uid: u-llama
  creationTimestamp: "2026-11-21T13:00:00Z"
  managedFields: [{manager: LEAK-managed-fields}]
  annotations:
    gangctl.dev/command: >-
      gangctl submit tf llama --image i --env A=LEAK-command-env --env=B=LEAK-command-env-joined
      --set 'spec.tfReplicaSpecs.Worker.template.spec.containers[0].env[0].value=LEAK-command-set'
      --set='spec.tfReplicaSpecs.Worker.template.spec.containers[0].livenessProbe.httpGet.httpHeaders[0].value=LEAK-command-header'
      --annotation api-key=LEAK-command-annotation --sync-git https://ann:LEAK-command-git@example.com/a --workers 1
      -- python train.py --api-key LEAK-command-arg --hf-token=LEAK-command-arg-joined
    kubectl.kubernetes.io/last-applied-configuration: '{"spec":{"env":"LEAK-last-applied"}}'
    kapp.k14s.io/original: '{"spec":{"env":"LEAK-kapp"}}'
    objectset.rio.cattle.io/applied: H4sILEAK-rancher
    argocd.argoproj.io/tracking: '[{"value":"LEAK-list"}]'
    example.com/manifest: "apiVersion: v1\nLEAK-yaml: x"
    example.com/api-token: LEAK-annotation
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 3
      template:
        spec:
          initContainers:
          - {name: i, image: i, env: [{name: I, value: LEAK-init-env}]}
          containers:
          - name: tensorflow
            image: tf:1
            env: [{name: A, value: LEAK-env}, {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}]
            command: [python, train.py, --password, LEAK-arg]
            args: [--api-key=LEAK-arg-joined, "sh -c 'HF_TOKEN=LEAK-arg-shell python'", "https://ann:LEAK-arg-url@example.com"]
            livenessProbe: {httpGet: {path: /, port: 1, httpHeaders: [{name: Authorization, value: LEAK-header}]}}
            readinessProbe: {exec: {command: [curl, --token, LEAK-probe]}}
            lifecycle: {preStop: {httpGet: {path: /, port: 1, httpHeaders: [{name: Authorization, value: LEAK-lifecycle}]}}}
          volumes:
          - {name: v, csi: {driver: d, volumeAttributes: {password: LEAK-volume}}}
status:
  conditions: [{type: Failed, status: "True", reason: Bad, message: "pull https://ann:LEAK-condition@example.com failed"}]
---
apiVersion: v1
kind: Pod
metadata:
  name: llama-worker-0
  namespace: team
  uid: u-pod
  creationTimestamp: "2026-11-21T13:00:00Z"
  labels: {training.kubeflow.org/job-name: llama, training.kubeflow.org/replica-type: worker, training.kubeflow.org/replica-index: "0"}
  ownerReferences: [{apiVersion: kubeflow.org/v1, kind: TFJob, name: llama, uid: u-llama, controller: true}]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"a":"LEAK-pod-last-applied"}'}
spec:
  containers:
  - {name: tensorflow, image: tf:1, env: [{name: A, value: LEAK-pod-env}], args: [--token=LEAK-pod-arg]}
status:
  phase: Pending
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "HF_TOKEN=LEAK-pod-condition is bad"}]
---
apiVersion: v1
kind: Pod
metadata:
  name: llama-worker-1
  namespace: team
  uid: u-pod-1
  creationTimestamp: "2026-11-21T13:00:00Z"
  labels: {training.kubeflow.org/job-name: llama, training.kubeflow.org/replica-type: worker, training.kubeflow.org/replica-index: "1"}
  ownerReferences: [{apiVersion: kubeflow.org/v1, kind: TFJob, name: llama, uid: u-llama, controller: true}]
spec:
  nodeName: node-0
  initContainers: [{name: i, image: i}]
  containers: [{name: tensorflow, image: tf:1}]
status:
  phase: Pending
  initContainerStatuses:
  - name: i
    restartCount: 2
    state: {waiting: {reason: CrashLoopBackOff, message: "TOKEN=LEAK-init-waiting is bad"}}
    lastState: {terminated: {exitCode: 1, reason: Error, message: "password=LEAK-init-last", startedAt: "2026-11-21T13:10:00Z", finishedAt: "2026-11-21T13:11:00Z"}}
---
apiVersion: v1
kind: Pod
metadata:
  name: llama-worker-2
  namespace: team
  uid: u-pod-2
  creationTimestamp: "2026-11-21T13:00:00Z"
  labels: {training.kubeflow.org/job-name: llama, training.kubeflow.org/replica-type: worker, training.kubeflow.org/replica-index: "2"}
  ownerReferences: [{apiVersion: kubeflow.org/v1, kind: TFJob, name: llama, uid: u-llama, controller: true}]
spec:
  nodeName: node-0
  containers: [{name: tensorflow, image: tf:1}]
status:
  phase: Running
  containerStatuses:
  - name: tensorflow
    restartCount: 2
    state: {running: {startedAt: "2026-11-21T13:20:00Z"}}
    lastState: {terminated: {exitCode: 1, reason: Error, message: "HF_TOKEN=LEAK-last-state", startedAt: "2026-11-21T13:10:00Z", finishedAt: "2026-11-21T13:11:00Z"}}
---
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: llama-waits, namespace: team, uid: u-waits, creationTimestamp: "2026-11-21T13:00:00Z"}
spec:
  tfReplicaSpecs:
    Worker: {replicas: 1, template: {spec: {containers: [{name: tensorflow, image: tf:1, env: [{name: A, value: LEAK-waits-env}], args: [--token=LEAK-waits-arg]}]}}}
status:
  conditions: [{type: Created, status: "True", reason: Created, message: "made by https://ann:LEAK-waits-condition@example.com"}]
---
apiVersion: v1
kind: Pod
metadata:
  name: llama-waits-worker-0
  namespace: team
  uid: u-waits-pod
  creationTimestamp: "2026-11-21T13:00:00Z"
  labels: {training.kubeflow.org/job-name: llama-waits, training.kubeflow.org/replica-type: worker, training.kubeflow.org/replica-index: "0"}
  ownerReferences: [{apiVersion: kubeflow.org/v1, kind: TFJob, name: llama-waits, uid: u-waits, controller: true}]
spec:
  schedulerName: other
  containers:
  - {name: tensorflow, image: tf:1, env: [{name: A, value: LEAK-waits-pod-env}], args: [--token=LEAK-waits-pod-arg]}
status:
  phase: Pending
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "password=LEAK-waits-refusal is bad"}]
---
apiVersion: v1
kind: Event
metadata: {name: e2, namespace: team, uid: u-event-2}
involvedObject: {apiVersion: v1, kind: Pod, namespace: team, name: llama-waits-worker-0, uid: u-waits-pod}
reason: FailedScheduling
message: "no place for --api-key LEAK-waits-event"
type: Warning
count: 1
firstTimestamp: "2026-11-21T13:30:00Z"
lastTimestamp: "2026-11-21T13:30:00Z"
---
apiVersion: v1
kind: Event
metadata: {name: e, namespace: team, uid: u-event}
involvedObject: {apiVersion: v1, kind: Pod, namespace: team, name: llama-worker-0, uid: u-pod}
reason: Failed
message: "exec: HF_TOKEN=LEAK-event: not found"
type: Warning
count: 1
firstTimestamp: "2026-11-21T13:30:00Z"
lastTimestamp: "2026-11-21T13:30:00Z"
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: team}
data: {k: LEAK-secret}
stringData: {k: LEAK-secret-string}
---
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata: {name: s, namespace: team, annotations: {example.com/password: LEAK-sealed-annotation}}
spec: {template: {data: {k: LEAK-sealed}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: team}
data: {k: LEAK-config}
binaryData: {k: TEVBSw==}
---
apiVersion: example.com/v1
kind: Trainer
metadata: {name: t, namespace: team}
spec: {env: {A: LEAK-env-map}, runner: {envs: [{name: A, value: LEAK-envs}]}}
`

// withSecrets is the cluster with the places.
func withSecrets(t *testing.T) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Read(strings.NewReader(places))
	if err != nil {
		t.Fatal(err)
	}
	c := clustertest.New().Nodes(1, 8)
	c.S.Pods, c.S.Events, c.S.Custom = append(c.S.Pods, s.Pods...), append(c.S.Events, s.Events...), s.Custom
	return c.Done()
}

// typed is what a command prints, its failure included.
func typed(t *testing.T, client func() (*kube.Client, error), command func(*cmdutil.Factory) *cobra.Command, args ...string) string {
	t.Helper()
	io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(clustertest.Now))
	cmd := command(&cmdutil.Factory{IO: io, Client: client, Namespace: func() (string, error) { return "team", nil }})
	text := ""
	if err := commandtest.Execute(t.Context(), cmd, args...); err != nil {
		text = err.Error()
	}
	return out.String() + errOut.String() + text
}

// No secret of a job's owner is in what others are shown or given, wherever it was kept.
func TestNoSecretGetsOut(t *testing.T) {
	s := withSecrets(t)
	server := kubetest.Serve(t, s)
	shown := map[string]string{}
	file := filepath.Join(t.TempDir(), "s.yaml")
	if err := s.Save(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	shown["snapshot --save"] = string(text)
	for name, args := range map[string][]string{"report": {"llama"}, "report -o json": {"llama", "-o", "json"}} {
		stdout, stderr, failed := run(t, server.Client, 0, args...)
		if failed != nil {
			t.Fatal(name, failed)
		}
		shown[name] = stdout + stderr
	}
	one := kubetest.New(t)
	one.Answer("GET /apis/kubeflow.org/v1/namespaces/team/tfjobs/llama", 200, s.Custom[schema.GroupKind{Group: "kubeflow.org", Kind: "TFJob"}][0])
	one.Answer("GET /api/v1/namespaces/team/pods", 200, kubetest.PodList(s.Pods...))
	happened := corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}}
	for _, e := range s.Events {
		happened.Items = append(happened.Items, *e)
	}
	one.Answer("GET /api/v1/namespaces/team/events", 200, happened)
	for _, args := range [][]string{{"llama"}, {"llama", "-o", "json"}} {
		io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(clustertest.Now))
		cmd := describe.NewCommand(&cmdutil.Factory{IO: io, Client: one.Client, Namespace: func() (string, error) { return "team", nil }}, nil)
		if failed := failure.From(commandtest.Execute(t.Context(), cmd, args...)); failed != nil {
			t.Fatal(args, failed)
		}
		shown["describe "+strings.Join(args, " ")] = out.String() + errOut.String()
	}
	for _, args := range [][]string{
		{"tfjob/llama"}, {"tfjob/llama", "-v"}, {"tfjob/llama-waits", "-v"}, {"tfjob/llama-waits", "-o", "json"}, {"tfjob/llama-waits", "-o", "yaml"}, {"tfjob/llama", "-o", "json"}, {"tfjob/llama", "-o", "yaml"}, {"pod/llama-worker-0"}, {"-A"}, {"-A", "-o", "json"},
	} {
		shown["why-pending "+strings.Join(args, " ")] = typed(t, server.Client, func(f *cmdutil.Factory) *cobra.Command { return whypending.NewCommand(f, nil) }, args...)
	}
	shown["events"] = typed(t, one.Client, func(f *cmdutil.Factory) *cobra.Command { return events.NewCommand(f, nil) }, "tfjob/llama")
	shown["list"] = typed(t, server.Client, func(f *cmdutil.Factory) *cobra.Command { return list.NewCommand(f, nil) }, "-A")
	shown["top job"] = typed(t, server.Client, func(f *cmdutil.Factory) *cobra.Command { return top.NewCommand(f, nil) }, "job", "-A")
	// The scheduler's answer becomes an event of the namespace.
	a, err := diagnose.Explain(t.Context(), s, diagnose.Query{Namespace: "team", Name: "llama"}, diagnose.Options{})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	shown["the published answer"] = string(answer)
	for name, text := range shown {
		if !strings.Contains(text, "llama") {
			t.Errorf("%s is about something else: %.200s", name, text)
		}
		for line := range strings.Lines(text) {
			for i := strings.Index(line, "LEAK"); i >= 0; i = -1 {
				t.Errorf("%s: %s", name, line[max(0, i-60):min(len(line), i+40)])
			}
		}
	}
	for _, kept := range []string{"name: KEY", "secretKeyRef", "--workers 1", "--env A=…", "train.py"} {
		if !strings.Contains(shown["snapshot --save"], kept) {
			t.Errorf("%s is not in the file", kept)
		}
	}
}
