package manifest

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const job = `apiVersion: kubeflow.org/v1
kind: TFJob
metadata:
  name: llama
  labels: {team: vision}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          volumes:
          - {name: tmp, emptyDir: {}}
          containers:
          - name: tensorflow
            image: i
            resources:
              limits: {cpu: 4, nvidia.com/gpu: "2"}
`

const podGroup = `apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: llama}
spec: {minMember: 2}
`

func TestParse(t *testing.T) {
	for name, text := range map[string]string{
		"one document": job, "job first": job + "---\n" + podGroup, "group first": "# a gang\n" + podGroup + "---\n" + job + "---\n# the end\n",
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if m.Job.GetName() != "llama" || (m.PodGroup != nil) != strings.Contains(text, "PodGroup") || len(m.Dropped) > 0 {
				t.Errorf("got %+v", m)
			}
			// What was written arrives as it was, empty maps included.
			volumes := m.Job.Object["spec"].(map[string]any)["tfReplicaSpecs"].(map[string]any)["Worker"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["volumes"].([]any)
			if _, ok := volumes[0].(map[string]any)["emptyDir"].(map[string]any); !ok {
				t.Errorf("volumes: %v", volumes)
			}
		})
	}
}

func TestParseJSON(t *testing.T) {
	m, err := Parse([]byte(`{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"generateName": "llama-"}, "spec": {"tfReplicaSpecs": {}}}`))
	if err != nil || m.Job.GetGenerateName() != "llama-" {
		t.Errorf("got %v, %v", m, err)
	}
}

// A file that was read from a cluster can be submitted again.
func TestServerFieldsAreDropped(t *testing.T) {
	text := strings.Replace(job, "  name: llama\n", "  name: llama\n  uid: u\n  resourceVersion: \"7\"\n  creationTimestamp: null\n", 1) + "status: {conditions: []}\n"
	m, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"metadata.resourceVersion", "metadata.uid", "status"}; !slices.Equal(m.Dropped, want) {
		t.Errorf("dropped %v, want %v", m.Dropped, want)
	}
	if m.Job.GetUID() != "" || m.Job.GetResourceVersion() != "" || m.Job.Object["status"] != nil {
		t.Errorf("got %v", m.Job.Object)
	}
}

func TestRefusals(t *testing.T) {
	with := func(from, to string) string {
		if !strings.Contains(job, from) {
			t.Fatalf("no %q in the job", from)
		}
		return strings.Replace(job, from, to, 1)
	}
	tests := map[string]struct{ text, want string }{
		"empty":           {"# nothing\n", "the file holds no objects"},
		"no object":       {"- a\n", "document 1, line 1: no Kubernetes object"},
		"no kind":         {"metadata: {name: a}\n", "document 1, line 1: no Kubernetes object"},
		"broken yaml":     {job + "---\nkind: [\n", "document 2, line 20: invalid YAML"},
		"only a group":    {podGroup, "the file holds no TFJob: gangctl submits one TFJob of kubeflow.org/v1"},
		"old version":     {with("kubeflow.org/v1", "kubeflow.org/v1beta2"), "document 1, line 1: TFJob of kubeflow.org/v1beta2 cannot be submitted: gangctl submits one TFJob of kubeflow.org/v1"},
		"another kind":    {job + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "document 2, line 20: ConfigMap of v1 cannot be submitted"},
		"another dialect": {job + "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n", "document 2, line 20: PodGroup of scheduling.volcano.sh/v1beta1 cannot be submitted"},
		"two jobs":        {job + "---\n" + with("llama", "bert"), "document 2, line 20: a second TFJob, bert: gangctl submits one TFJob"},
		"two groups":      {job + "---\n" + podGroup + "---\n" + podGroup, "document 3, line 25: a second PodGroup, llama"},
		"no name":         {with("  name: llama\n", ""), "document 1, line 1: TFJob has no metadata.name"},
		"unknown field":   {with("replicas: 2", "replicass: 2"), "document 1, line 9: TFJob llama: unknown field spec.tfReplicaSpecs.Worker.replicass: did you mean replicas?"},
		"deep field":      {with("            image: i", "            imag: i"), "document 1, line 16: TFJob llama: unknown field spec.tfReplicaSpecs.Worker.template.spec.containers[0].imag: did you mean image?"},
		"in flow style":   {with("emptyDir: {}", "emptyDri: {}"), "document 1, line 13: TFJob llama: unknown field spec.tfReplicaSpecs.Worker.template.spec.volumes[0].emptyDri: did you mean emptyDir?"},
		"wrong case":      {with("spec:\n  tf", "Spec:\n  tf"), "document 1, line 6: TFJob llama: unknown field Spec: did you mean spec?"},
		"no number":       {with("replicas: 2", "replicas: many"), `document 1, line 9: TFJob llama: spec.tfReplicaSpecs.Worker.replicas: "many": must be a whole number`},
		"no quantity":     {with("cpu: 4", "cpu: 4x"), `document 1, line 18: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.containers[0].resources.limits.cpu: "4x": quantities must match`},
		"no text":         {with("image: i", "image: 7"), `document 1, line 16: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.containers[0].image: "7": must be a text: put it in quotes`},
		"no list":         {with("image: i", "command: python"), `document 1, line 16: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.containers[0].command: "python": must be a list`},
		"no map":          {with("{team: vision}", "vision"), `document 1, line 5: TFJob llama: metadata.labels: "vision": must be a map`},
		"no fields":       {with("{name: tmp, emptyDir: {}}", "tmp"), `document 1, line 13: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.volumes[0]: "tmp": must be a map of fields`},
		"twice":           {with("            image: i", "            image: i\n            image: j"), "document 1, line 17: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.containers[0].image is given twice"},
		"in the group":    {job + "---\n" + strings.Replace(podGroup, "minMember", "minMembers", 1), "document 2, line 23: PodGroup llama: unknown field spec.minMembers: did you mean minMember?"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if strings.Contains(err.Error(), ErrUnsupported.Error()) != errors.Is(err, ErrUnsupported) {
				t.Errorf("the cause is lost: %v", err)
			}
		})
	}
}

// Anchors, merges and block texts are YAML too.
func TestAnchors(t *testing.T) {
	const text = `apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: llama}
spec:
  tfReplicaSpecs:
    PS: &ps
      replicas: 1
      template: {spec: {containers: [{name: tensorflow, image: i, args: [&script "echo\n"]}]}}
    Worker:
      <<: *ps
      replicas: 2
    Chief:
      template: {spec: {containers: [{name: tensorflow, args: [*script]}]}}
`
	m, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Job.Object["spec"].(map[string]any)["tfReplicaSpecs"].(map[string]any)["Worker"].(map[string]any); got["replicas"] != int64(2) || got["template"] == nil {
		t.Errorf("got %v", got)
	}
	_, err = Parse([]byte(strings.Replace(text, "args: [*script]", "arg: [*script]", 1)))
	if err == nil || !strings.Contains(err.Error(), "document 1, line 13: TFJob llama: unknown field spec.tfReplicaSpecs.Chief.template.spec.containers[0].arg") {
		t.Errorf("got %v", err)
	}
}
