package manifest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
			if len(m.Jobs) != 1 || m.Jobs[0].GetName() != "llama" || (len(m.Groups) == 1) != strings.Contains(text, "PodGroup") || len(m.Dropped)+len(m.Notes)+len(m.Others) > 0 {
				t.Errorf("got %+v", m)
			}
			// What was written arrives as it was, empty maps included.
			volumes := m.Jobs[0].Object["spec"].(map[string]any)["tfReplicaSpecs"].(map[string]any)["Worker"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["volumes"].([]any)
			if _, ok := volumes[0].(map[string]any)["emptyDir"].(map[string]any); !ok {
				t.Errorf("volumes: %v", volumes)
			}
		})
	}
}

func TestParseJSON(t *testing.T) {
	m, err := Parse([]byte(`{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"generateName": "llama-"}, "spec": {"tfReplicaSpecs": {}}}`))
	if err != nil || m.Jobs[0].GetGenerateName() != "llama-" {
		t.Errorf("got %v, %v", m, err)
	}
}

// A file that was read from a cluster can be submitted again.
func TestServerFieldsAreDropped(t *testing.T) {
	text := strings.Replace(job, "  name: llama\n", "  name: llama\n  uid: u\n  resourceVersion: \"7\"\n  creationTimestamp: null\n", 1)
	text = strings.Replace(text, "      template:\n", "      template:\n        metadata: {creationTimestamp: null}\n", 1) + "status: {conditions: []}\n"
	m, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"metadata.resourceVersion", "metadata.uid", "status"}; !slices.Equal(m.Dropped, want) {
		t.Errorf("dropped %v, want %v", m.Dropped, want)
	}
	if raw, err := json.Marshal(m.Jobs[0]); err != nil || strings.Contains(string(raw), "creationTimestamp") {
		t.Errorf("an empty time is left: %s, %v", raw, err)
	}
	if job := m.Jobs[0]; job.GetUID() != "" || job.GetResourceVersion() != "" || job.Object["status"] != nil {
		t.Errorf("got %v", job.Object)
	}
}

// A Job of one pod prepares something, unless it is known that the file is about it.
func TestParseOfAJobOfOnePod(t *testing.T) {
	one := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: one}\nspec: {parallelism: 1}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: one}\n"
	for text, want := range map[string]string{one: "one", one + "---\n" + strings.Replace(one, "one}\nspec: {parallelism: 1", "four}\nspec: {parallelism: 4", 1): "four"} {
		m, err := ParseOf(schema.GroupKind{Group: "batch", Kind: "Job"}, []byte(text))
		if err != nil || len(m.Jobs) != 1 || m.Jobs[0].GetName() != want || slices.ContainsFunc(m.Others, func(u *unstructured.Unstructured) bool { return u.GetName() == want && u.GetKind() == "Job" }) {
			t.Errorf("%s: got %+v, %v", want, m, err)
		}
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
		"empty":          {"# nothing\n", "the file holds no objects"},
		"no object":      {"- a\n", "document 1, line 1: no Kubernetes object"},
		"no kind":        {"metadata: {name: a}\n", "document 1, line 1: no Kubernetes object"},
		"no version":     {"kind: ConfigMap\nmetadata: {name: a}\n", "document 1, line 1: no Kubernetes object: it has no kind, or no apiVersion"},
		"broken yaml":    {job + "---\nkind: [\n", "document 2, line 20: invalid YAML"},
		"only a group":   {podGroup, "the file holds no job, but PodGroup llama"},
		"the first":      {with("kubeflow.org/v1", "kubeflow.org/v1alpha1"), "document 1, line 1: TFJob llama: kubeflow.org/v1alpha1 cannot be converted: gangctl converts TFJobs from v1alpha2 on"},
		"another job":    {"apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: c}\nspec: {runPolicy: {backoffLimit: x}}\n", `document 1, line 4: PyTorchJob c: spec.runPolicy.backoffLimit: "x": must be a whole number`},
		"of Volcano":     {"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: c}\nspec: {minAvailable: 3, tasks: [{replicas: 3}]}\n", "the file holds no job, but Job c"},
		"many others":    {strings.Repeat("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n---\n", 5), "the file holds no job, but ConfigMap c, ConfigMap c, ConfigMap c and 2 more"},
		"an empty list":  {"apiVersion: v1\nkind: List\nitems: []\n", "the file holds no objects"},
		"a plain Job":    {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: c}\nspec: {parallelism: 1}\n", "the file holds no job, but Job c"},
		"in a list":      {"kind: List\napiVersion: v1\nitems:\n- 7\n", "document 1, line 1: items[0] is no object"},
		"kind in a list": {"kind: List\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: a}\n- metadata: {name: a}\n", "document 1, line 7: no Kubernetes object"},
		"type in a list": {"kind: List\napiVersion: v1\nitems:\n- apiVersion: kubeflow.org/v1\n  kind: TFJob\n  metadata: {name: a}\n  spec: []\n", "document 1, line 7: TFJob a: spec: must be a map of fields"},
		"no name":        {with("  name: llama\n", ""), "document 1, line 1: TFJob has no metadata.name"},
		"nameless":       {job + "---\napiVersion: v1\nkind: Secret\n", "document 2, line 20: Secret has no metadata.name"},
		"no number":      {with("replicas: 2", "replicas: many"), `document 1, line 9: TFJob llama: spec.tfReplicaSpecs.Worker.replicas: "many": must be a whole number`},
		"no quantity":    {with("cpu: 4", "cpu: 4x"), `document 1, line 18: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.containers[0].resources.limits.cpu: "4x": quantities must match`},
		"no text":        {with("image: i", "image: 7"), `document 1, line 16: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.containers[0].image: "7": must be a text: put it in quotes`},
		"no list":        {with("image: i", "command: python"), `document 1, line 16: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.containers[0].command: "python": must be a list`},
		"no map":         {with("{team: vision}", "vision"), `document 1, line 5: TFJob llama: metadata.labels: "vision": must be a map`},
		"no fields":      {with("{name: tmp, emptyDir: {}}", "tmp"), `document 1, line 13: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.volumes[0]: "tmp": must be a map of fields`},
		"old policy":     {with("spec:\n  tf", "spec:\n  backoffLimit: six\n  tf"), `document 1, line 7: TFJob llama: spec.backoffLimit: "six": must be a whole number`},
		"two policies":   {with("spec:\n  tf", "spec:\n  backoffLimit: 6\n  runPolicy: {backoffLimit: 3}\n  tf"), `document 1, line 1: TFJob llama: spec.backoffLimit is 6, but spec.runPolicy.backoffLimit is 3`},
		"of a JobSet": {"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s}\nspec:\n  network: {subdomain: s}\n  replicatedJobs:\n  - name: a\n    replicas: two\n",
			`document 1, line 8: JobSet s: spec.replicatedJobs[0].replicas: "two": must be a whole number`},
		"twice":           {with("            image: i", "            image: i\n            image: j"), "document 1, line 17: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.containers[0].image is given twice"},
		"twice elsewhere": {job + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b, a: c}\n", "document 2, line 23: ConfigMap c: data.a is given twice"},
		"in the group":    {job + "---\n" + strings.Replace(podGroup, "minMember: 2", "minMember: two", 1), `document 2, line 23: PodGroup llama: spec.minMember: "two": must be a whole number`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// Of a file without a job the hint is about what it holds.
func TestNoJob(t *testing.T) {
	for of, want := range map[string]string{
		"batch/v1 Job":                  "gangctl submit job -f x submits it all the same",
		"batch.volcano.sh/v1alpha1 Job": "gangctl reads each Volcano Job, and submits none: kubectl create -f x",
		"kubeflow.org/v1 TfJob":         "did you mean a TFJob of kubeflow.org/v1?",
		"v1 TFJob":                      "did you mean a TFJob of kubeflow.org/v1?",
		"kubeflow.org/v1 PyTochJob":     "did you mean a PyTorchJob of kubeflow.org/v1?",
		"kubeflow.org/v1 MXJob":         "gangctl submits TFJobs",
		"batch/v1 CronJob":              "gangctl submits TFJobs",
		"apps/v1 Deployment":            "gangctl submits TFJobs",
	} {
		version, kind, _ := strings.Cut(of, " ")
		_, err := Parse([]byte("apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: a}\n"))
		var none *NoJobError
		if !errors.As(err, &none) || !strings.Contains(none.Hint("-f x"), want) {
			t.Errorf("%s: got %v\nwant %s", of, err, want)
		}
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
	if got := m.Jobs[0].Object["spec"].(map[string]any)["tfReplicaSpecs"].(map[string]any)["Worker"].(map[string]any); got["replicas"] != int64(2) || got["template"] == nil {
		t.Errorf("got %v", got)
	}
	m, err = Parse([]byte(strings.Replace(text, "args: [*script]", "arg: [*script]", 1)))
	if err != nil || len(m.Notes) != 1 || !strings.HasPrefix(m.Notes[0], "document 1, line 13: TFJob llama: spec.tfReplicaSpecs.Chief.template.spec.containers[0].arg (did you mean args?): ") {
		t.Errorf("got %v, %v", m, err)
	}
}

// An unknown field is reported with its path, and kept.
func TestUnknownFields(t *testing.T) {
	tests := map[string]struct{ from, to, want string }{
		"a slip":        {"replicas: 2", "replicass: 2", "document 1, line 9: TFJob llama: spec.tfReplicaSpecs.Worker.replicass (did you mean replicas?): gangctl does not know this field, and leaves it to the API server"},
		"deep":          {"            image: i", "            imag: i", "document 1, line 16: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.containers[0].imag (did you mean image?)"},
		"in flow style": {"emptyDir: {}", "emptyDri: {}", "document 1, line 13: TFJob llama: spec.tfReplicaSpecs.Worker.template.spec.volumes[0].emptyDri (did you mean emptyDir?)"},
		"wrong case":    {"labels:", "Labels:", "document 1, line 5: TFJob llama: metadata.Labels (did you mean labels?)"},
		"of the future": {"spec:\n  tf", "spec:\n  checkpoints: {every: 5m}\n  tf", "document 1, line 7: TFJob llama: spec.checkpoints: gangctl does not know"},
		"in the group":  {"minMember: 2", "minMembers: 2", "document 2, line 23: PodGroup llama: spec.minMembers (did you mean minMember?)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := job + "---\n" + podGroup
			m, err := Parse([]byte(strings.Replace(text, tt.from, tt.to, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Notes) != 1 || !strings.HasPrefix(m.Notes[0], tt.want) {
				t.Errorf("got %q", m.Notes)
			}
			raw, err := json.Marshal([]any{m.Jobs[0], m.Groups[0]})
			if field := strings.Fields(strings.TrimSpace(strings.TrimPrefix(tt.to, "spec:\n")))[0]; err != nil || !strings.Contains(string(raw), `"`+strings.Trim(field, ":")+`"`) {
				t.Errorf("%s is lost: %s, %v", field, raw, err)
			}
		})
	}
}

// Old versions are converted, lists taken apart, and objects that are no jobs are kept as they are.
func TestWholeFiles(t *testing.T) {
	const beside = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, creationTimestamp: null}
data: {rate: "0.1"}
---
apiVersion: example.com/v1
kind: Volume
metadata: {generateName: data-, uid: u}
anything: {goes: here}
`
	old := strings.Replace(strings.Replace(job, "kubeflow.org/v1", "kubeflow.org/v1beta1", 1), "name: llama", "name: bert", 1)
	volcano := strings.Replace(podGroup, "scheduling.x-k8s.io/v1alpha1", "scheduling.volcano.sh/v1beta1", 1)
	items := "apiVersion: v1\nkind: List\nitems:\n"
	for i, line := range strings.Split(strings.TrimSuffix(job, "\n"), "\n") {
		items += map[bool]string{true: "- ", false: "  "}[i == 0] + line + "\n"
	}
	const jobs = `---
apiVersion: batch/v1
kind: Job
metadata: {name: prepare}
spec: {template: {}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: many}
spec: {parallelism: 4, completionMode: Indexed, template: {}}
---
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: ring}
`
	m, err := Parse([]byte(items + beside + jobs + "---\n" + old + "---\n" + volcano))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, u := range slices.Concat(m.Jobs, m.Groups, m.Others) {
		names = append(names, u.GetAPIVersion()+" "+u.GetKind()+" "+u.GetName()+u.GetGenerateName())
	}
	want := []string{"kubeflow.org/v1 TFJob llama", "batch/v1 Job many", "kubeflow.org/v2beta1 MPIJob ring", "kubeflow.org/v1 TFJob bert", "scheduling.volcano.sh/v1beta1 PodGroup llama",
		"v1 ConfigMap settings", "example.com/v1 Volume data-", "batch/v1 Job prepare"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
	if !slices.Equal(m.Dropped, []string{"metadata.uid"}) {
		t.Errorf("dropped %q", m.Dropped)
	}
	if len(m.Notes) != 2 || m.Notes[0] != "TFJob bert: it is a TFJob of kubeflow.org/v1 now, and was one of kubeflow.org/v1beta1" {
		t.Errorf("notes %q", m.Notes)
	}
	if got, _, _ := unstructured.NestedString(m.Others[1].Object, "anything", "goes"); got != "here" {
		t.Errorf("got %v", m.Others[1].Object)
	}
}

// A role without members is left out, as submit leaves it out of the jobs that it makes, and that is noted. Where all are such, nothing is left out: that is
// refused.
func TestRolesWithoutMembers(t *testing.T) {
	const text = `apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: llama}
spec:
  tfReplicaSpecs:
    PS: {replicas: 0, template: {spec: {containers: [{name: tensorflow, image: i}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: tensorflow, image: i}]}}}
`
	for _, tt := range []struct {
		text  string
		roles int
		note  string
	}{
		{text, 1, "TFJob llama: spec.tfReplicaSpecs.PS is left out, as it has 0 replicas"},
		{strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(text, "TFJob", "PyTorchJob"), "tfReplica", "pytorchReplica"), "PS:", "Master:"), 1, "PyTorchJob llama: spec.pytorchReplicaSpecs.Master is left out"},
		{strings.Replace(text, "replicas: 2", "replicas: 0", 1), 2, ""},
		{strings.Replace(text, "replicas: 0, ", "", 1), 2, ""},
	} {
		m, err := Parse([]byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		spec, _, _ := unstructured.NestedMap(m.Jobs[0].Object, "spec")
		for _, roles := range spec {
			if n := len(roles.(map[string]any)); n != tt.roles {
				t.Errorf("got %d roles, want %d", n, tt.roles)
			}
		}
		if (len(m.Notes) > 0) != (tt.note != "") || len(m.Notes) > 0 && !strings.HasPrefix(m.Notes[0], tt.note) {
			t.Errorf("got %q, want %q", m.Notes, tt.note)
		}
	}
}
