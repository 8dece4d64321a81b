package command

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/internal/prerequisite"
)

func job(kind, version string) Target {
	j := Target{Kind: schema.GroupVersionKind{Group: "kubeflow.org", Version: version, Kind: kind}, Namespace: "team", Name: "j", Pods: "training.kubeflow.org/job-name=j"}
	if kind == "Job" {
		j.Kind.Group = "batch"
		j.Template = &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{batchv1.ControllerUidLabel: "u", "controller-uid": "u", "job-name": "j"}}}
	}
	return j
}

func replicas(role string) RolePatch {
	return RolePatch{role, []Patch{{Op: "add", Path: "/replicas", Value: 2}}}
}

func template(role string) RolePatch {
	return RolePatch{role, []Patch{{Op: "remove", Path: "/template/spec/nodeSelector"}}}
}

// suspended are the commands that change a job while it has no pods.
func suspended(kind, steps string) []string {
	return []string{
		`kubectl -n team patch ` + kind + ` j --type=merge -p '{"spec":{"runPolicy":{"suspend":true}}}'`,
		"kubectl -n team wait --for=delete pods -l training.kubeflow.org/job-name=j --timeout=5m",
		`kubectl -n team patch ` + kind + ` j --type=json -p '[` + steps + `,{"op":"add","path":"/spec/runPolicy/suspend","value":false}]'`,
	}
}

func TestChange(t *testing.T) {
	tests := map[string]struct {
		job     Target
		roles   []RolePatch
		further []Patch
		want    []string
	}{
		"TFJob, members": {job("TFJob", "v1"), []RolePatch{replicas("Worker")}, nil, suspended("tfjob",
			`{"op":"add","path":"/spec/tfReplicaSpecs/Worker/replicas","value":2}`)},
		"PyTorchJob, template and minimum": {job("PyTorchJob", "v1"), []RolePatch{template("Worker")}, []Patch{{Op: "add", Path: "/spec/runPolicy/x", Value: 1}}, suspended("pytorchjob",
			`{"op":"add","path":"/spec/runPolicy/x","value":1},{"op":"remove","path":"/spec/pytorchReplicaSpecs/Worker/template/spec/nodeSelector"}`)},
		"an operator that does not know suspend": {func() Target { j := job("TFJob", "v1"); j.Unsuspendable = true; return j }(), []RolePatch{template("Worker")}, nil, []string{
			`kubectl -n team patch tfjob j --type=json -p '[{"op":"remove","path":"/spec/tfReplicaSpecs/Worker/template/spec/nodeSelector"}]'`,
			"kubectl -n team delete pods -l training.kubeflow.org/job-name=j"}},
		"nothing that pods know": {job("TFJob", "v1"), nil, []Patch{{Op: "add", Path: "/spec/runPolicy/x", Value: 1}}, []string{
			`kubectl -n team patch tfjob j --type=json -p '[{"op":"add","path":"/spec/runPolicy/x","value":1}]'`}},
		"MPIJob, members: they are in a file that follows": {job("MPIJob", "v2beta1"), []RolePatch{replicas("Worker")}, nil, []string{
			`kubectl -n team patch mpijob j --type=json -p '[{"op":"add","path":"/spec/mpiReplicaSpecs/Worker/replicas","value":2}]'`}},
		"MPIJob of the MPI Operator, launcher": {job("MPIJob", "v2beta1"), []RolePatch{template("Launcher")}, nil, []string{
			`kubectl -n team patch mpijob j --type=merge -p '{"spec":{"runPolicy":{"suspend":true}}}'`,
			"kubectl -n team wait --for=delete pods -l training.kubeflow.org/job-name=j --timeout=5m",
			`kubectl -n team patch mpijob j --type=json -p '[{"op":"remove","path":"/spec/mpiReplicaSpecs/Launcher/template/spec/nodeSelector"}]'`,
			"kubectl -n team delete job j-launcher", `kubectl -n team patch mpijob j --type=merge -p '{"spec":{"runPolicy":{"suspend":false}}}'`}},
		"MPIJob of the Training Operator, launcher": {job("MPIJob", "v1"), []RolePatch{template("Launcher")}, nil, suspended("mpijob",
			`{"op":"remove","path":"/spec/mpiReplicaSpecs/Launcher/template/spec/nodeSelector"}`)},
		"no pods, none to delete": {func() Target { j := job("TFJob", "v1"); j.Pods = ""; return j }(), []RolePatch{template("Worker")}, nil, []string{
			`kubectl -n team patch tfjob j --type=json -p '[{"op":"remove","path":"/spec/tfReplicaSpecs/Worker/template/spec/nodeSelector"}]'`}},
		"batch Job, parallelism": {job("Job", "v1"), []RolePatch{{"Worker", []Patch{{Op: "add", Path: "/parallelism", Value: 2}}}}, nil, []string{
			`kubectl -n team patch job j --type=json -p '[{"op":"add","path":"/spec/parallelism","value":2}]'`}},
		"batch Job, template": {job("Job", "v1"), []RolePatch{template("Worker")}, nil, []string{
			`kubectl -n team get job j -o json | kubectl patch --local -f - --type=json -p '[{"op":"remove","path":"/spec/selector"},` +
				`{"op":"remove","path":"/spec/template/metadata/labels/batch.kubernetes.io~1controller-uid"},{"op":"remove","path":"/spec/template/metadata/labels/controller-uid"},` +
				`{"op":"remove","path":"/spec/template/spec/nodeSelector"}]' -o json | kubectl -n team replace --force -f -`}},
		"nothing":            {job("TFJob", "v1"), nil, nil, nil},
		"nothing, batch Job": {job("Job", "v1"), nil, nil, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := Change(tt.job, tt.roles, tt.further...)
			if want := strings.Join(tt.want, "\n"); got != want || !ok {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
	for _, j := range []Target{job("TFJob", "v1alpha1"), job("RayJob", "v1")} {
		if got, ok := Change(j, []RolePatch{template("Worker")}); ok || got != "" {
			t.Errorf("%s %s: got %q", j.Kind.Kind, j.Kind.Version, got)
		}
	}
}

// A Job that chose its selector itself keeps it.
func TestChangeKeepsAnOwnSelector(t *testing.T) {
	j := job("Job", "v1")
	j.Template.Labels = map[string]string{"app": "x"}
	if got, _ := Change(j, []RolePatch{template("Worker")}); strings.Contains(got, "/spec/selector") || !strings.Contains(got, "replace --force") {
		t.Errorf("got %s", got)
	}
}

// kubectl itself makes the Job that takes the place of the old one: without what the API server would refuse, and with the
// change.
func TestRecreateWithKubectl(t *testing.T) {
	kubectl := prerequisite.Program(t, "kubectl")
	old := batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "team", UID: "u"}}
	old.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: "u"}}
	old.Spec.Template = *job("Job", "v1").Template
	old.Spec.Template.Spec.NodeSelector = map[string]string{"it's": "$HOME"}
	raw, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := Change(job("Job", "v1"), []RolePatch{{"Worker", []Patch{{Op: "replace", Path: "/template/spec/nodeSelector/it's", Value: "`date`"}}}})
	parts := strings.Split(whole, " | ")
	if len(parts) != 3 {
		t.Fatalf("got %q", whole)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(parts[1], "kubectl", kubectl, 1))
	cmd.Stdin = bytes.NewReader(raw)
	cmd.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=/dev/null", "PATH=/usr/bin:/bin"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", parts[1], err)
	}
	var made batchv1.Job
	if err := json.Unmarshal(out, &made); err != nil {
		t.Fatal(err)
	}
	if made.Spec.Selector != nil || len(made.Spec.Template.Labels) != 1 || made.Spec.Template.Spec.NodeSelector["it's"] != "`date`" {
		t.Errorf("got selector %v, labels %v, nodeSelector %v", made.Spec.Selector, made.Spec.Template.Labels, made.Spec.Template.Spec.NodeSelector)
	}
}
