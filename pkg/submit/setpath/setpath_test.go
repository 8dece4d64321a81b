package setpath

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// job is a TFJob as the API server has it.
func job(t testing.TB) map[string]any {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(`
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: j, labels: {team: vision}, annotations: null}
spec:
  runPolicy: {backoffLimit: 3, suspend: false}
  tfReplicaSpecs:
    PS: {replicas: 1, template: {spec: {containers: [{name: tensorflow, image: a}]}}}
    Worker:
      replicas: 2
      template:
        spec:
          nodeSelector: {gpu: h100}
          tolerations: [{key: a}, {key: b}]
          containers: [{name: tensorflow, image: a, resources: {limits: {cpu: "1"}}, livenessProbe: {httpGet: {port: 80}}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

const (
	worker    = "spec.tfReplicaSpecs.Worker."
	pod       = worker + "template.spec."
	container = pod + "containers[0]."
)

// at is the value of a path, or nil.
func at(t *testing.T, object any, path string) any {
	t.Helper()
	a, err := parse(path + "=")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range a.Path {
		if s.Index < 0 {
			m, _ := object.(map[string]any)
			object = m[s.Key]
			continue
		}
		items, _ := object.([]any)
		if s.Index >= len(items) {
			return nil
		}
		object = items[s.Index]
	}
	return object
}

// What is set has the type that the field has.
func TestApply(t *testing.T) {
	for assignment, want := range map[string]any{
		worker + "replicas=4":                                     int64(4),
		"spec.runPolicy.suspend=true":                             true,
		"spec.runPolicy.backoffLimit=0":                           int64(0),
		"spec.runPolicy.schedulingPolicy.minAvailable=3":          int64(3),
		"spec.successPolicy=AllWorkers":                           "AllWorkers",
		container + "image=repo/x:1":                              "repo/x:1",
		container + "image=":                                      "",
		container + "image=007":                                   "007",
		container + `args=["a","b=c"]`:                            []any{"a", "b=c"},
		container + "env[0].name=A":                               "A",
		container + `env[0]={"name":"A","value":"1"}`:             map[string]any{"name": "A", "value": "1"},
		container + "resources.limits.cpu=500m":                   "500m",
		container + `resources.limits.nvidia\.com/gpu=8`:          "8",
		container + "livenessProbe.httpGet.port=8080":             int64(8080),
		container + "livenessProbe.httpGet.port=web":              "web",
		container + "securityContext.runAsNonRoot=true":           true,
		pod + "nodeSelector.gpu=a100":                             "a100",
		pod + `nodeSelector={"a":"b"}`:                            map[string]any{"a": "b"},
		pod + "tolerations[1].tolerationSeconds=60":               int64(60),
		pod + "tolerations[2].key=c":                              "c",
		`metadata.labels.example\.com/team=a=b`:                   "a=b",
		`metadata.annotations.x=two words`:                        "two words",
		worker + "template.metadata.labels.team=x":                "x",
		`spec.tfReplicaSpecs.Chief={"replicas":1,"template":{}}`:  map[string]any{"replicas": int64(1), "template": map[string]any{}},
		pod + "volumes[0].emptyDir.sizeLimit=2Gi":                 "2Gi",
		pod + "volumes[0].name=shm":                               "shm",
		worker + "template.metadata.creationTimestamp=not a time": nil,
	} {
		before := job(t)
		got, err := Apply(before, kubeflowv1.TFJob{}, assignment)
		if want == nil {
			if err == nil {
				t.Errorf("%s: no error", assignment)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", assignment, err)
			continue
		}
		path, _, _ := strings.Cut(assignment, "=")
		if diff := cmp.Diff(want, at(t, got, path)); diff != "" {
			t.Errorf("%s: -want +got\n%s", assignment, diff)
		}
		if diff := cmp.Diff(job(t), before); diff != "" {
			t.Errorf("%s changed what was given:\n%s", assignment, diff)
		}
		fits(t, assignment, got)
	}
}

// fits reports what in an object its type would not read.
func fits(t *testing.T, assignment string, object map[string]any) {
	t.Helper()
	var typed kubeflowv1.TFJob
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, &typed, true); err != nil {
		t.Errorf("%s: what was made is no TFJob: %v", assignment, err)
	}
}

func TestRemove(t *testing.T) {
	for _, path := range []string{"metadata.labels.team", "spec.runPolicy.backoffLimit", "spec.tfReplicaSpecs.PS", pod + "nodeSelector", container + "resources.limits.cpu"} {
		got, err := Apply(job(t), kubeflowv1.TFJob{}, path+"-")
		if err != nil || at(t, got, path) != nil || at(t, job(t), path) == nil {
			t.Errorf("%s: %v, %v", path, err, at(t, got, path))
		}
	}
	got, err := Apply(job(t), kubeflowv1.TFJob{}, pod+"tolerations[0]-")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{map[string]any{"key": "b"}}, at(t, got, pod+"tolerations")); diff != "" {
		t.Error(diff)
	}
}

func TestErrors(t *testing.T) {
	for assignment, want := range map[string]string{
		"":                                     `"": the path lacks a key at character 1`,
		"spec":                                 `"spec": must be PATH=VALUE, or PATH- to take the field away`,
		"=x":                                   `"=x": the path lacks a key at character 1`,
		"spec..a=1":                            `"spec..a=1": the path lacks a key at character 6`,
		"spec.a[x]=1":                          `"spec.a[x]=1": what stands in [] at character 7 must be a number from 0`,
		"spec.a[-1]=1":                         `"spec.a[-1]=1": what stands in [] at character 7 must be a number from 0`,
		"spec.a[0=1":                           `"spec.a[0=1": what stands in [] at character 7 must be a number from 0`,
		"spec.a[0]b=1":                         `"spec.a[0]b=1": after ] comes a dot, another [ or an equals sign`,
		"spec.a]=1":                            `"spec.a]=1": ] at character 7 has no [ before it`,
		`spec.a\`:                              `"spec.a\\": nothing comes after the last backslash`,
		"spec.a":                               `"spec.a": must be PATH=VALUE, or PATH- to take the field away`,
		"metadata.name=x":                      "metadata.name: the name has a flag of its own, --name",
		"metadata.namespace=x":                 "metadata.namespace: the namespace has a flag of its own, -n",
		"metadata.uid=x":                       "metadata.uid: only fields of spec, metadata.labels.KEY and metadata.annotations.KEY can be set",
		"status.startTime=x":                   "status.startTime: the status is the controller's to write",
		`spec={"tfReplicaSpecs":{}}`:           "spec: only fields of spec, metadata.labels.KEY and metadata.annotations.KEY can be set",
		"spec.runPolicy.backofLimit=1":         "spec.runPolicy.backofLimit: there is no such field; did you mean backoffLimit?",
		"spec.runpolicy.suspend=true":          "spec.runpolicy: there is no such field; did you mean runPolicy?",
		"spec.zzzzzzzzzz=1":                    "spec.zzzzzzzzzz: there is no such field; there are enableDynamicWorker, runPolicy, successPolicy, tfReplicaSpecs",
		"spec.tfReplicaSpecs.Wrk.x=1":          "spec.tfReplicaSpecs.Wrk: is not there: spec.tfReplicaSpecs has PS, Worker",
		worker + "replicas=two":                `spec.tfReplicaSpecs.Worker.replicas: "two": must be a whole number of 32 bits`,
		worker + "replicas=99999999999":        `spec.tfReplicaSpecs.Worker.replicas: "99999999999": must be a whole number of 32 bits`,
		worker + "replicas.x=1":                "spec.tfReplicaSpecs.Worker.replicas: is one value: it has no fields",
		worker + "replicas[0]=1":               "spec.tfReplicaSpecs.Worker.replicas: is one value: it has no fields",
		"spec.runPolicy.suspend=yes":           `spec.runPolicy.suspend: "yes": must be true or false`,
		"spec.runPolicy[0]=yes":                "spec.runPolicy: is no list: it has no item 0",
		container + "resources.limits.cpu=4x":  `spec.tfReplicaSpecs.Worker.template.spec.containers[0].resources.limits.cpu: "4x": must be a quantity, such as 500m, 4 or 16Gi`,
		container + "resources.limits.cpu.x=4": "spec.tfReplicaSpecs.Worker.template.spec.containers[0].resources.limits.cpu: is one value: it has no fields",
		pod + "containers.image=x":             "spec.tfReplicaSpecs.Worker.template.spec.containers: is a list: name the item, such as spec.tfReplicaSpecs.Worker.template.spec.containers[0].image",
		pod + "containers[2].image=x":          "spec.tfReplicaSpecs.Worker.template.spec.containers[2]: the list has 1 items, counted from 0",
		pod + "containers[1]-":                 "spec.tfReplicaSpecs.Worker.template.spec.containers[1]: the list has 1 items, counted from 0",
		pod + "hostNetwork-":                   "spec.tfReplicaSpecs.Worker.template.spec.hostNetwork: is not there, so it cannot be taken away",
		pod + "affinity.nodeAffinity-":         "spec.tfReplicaSpecs.Worker.template.spec.affinity: is not there, so it cannot be taken away",
		pod + `tolerations=[{"kye":"x"}]`:      `spec.tfReplicaSpecs.Worker.template.spec.tolerations: "[{\"kye\":\"x\"}]": unknown field "[0].kye"`,
		pod + "tolerations=null":               "spec.tfReplicaSpecs.Worker.template.spec.tolerations: null is no value; take the field away with spec.tfReplicaSpecs.Worker.template.spec.tolerations-",
	} {
		if _, err := Apply(job(t), kubeflowv1.TFJob{}, assignment); err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", assignment, err, want)
		}
	}
	if _, err := Apply(job(t), kubeflowv1.TFJob{}, "spec.successPolicy=", "spec.successPolicy-"); err == nil || err.Error() != "spec.successPolicy is given twice" {
		t.Errorf("twice: %v", err)
	}
}

// In order: what one assignment made, the next can change.
func TestOrder(t *testing.T) {
	got, err := Apply(job(t), kubeflowv1.TFJob{}, `spec.tfReplicaSpecs.Chief={"template":{}}`, "spec.tfReplicaSpecs.Chief.replicas=1", pod+"tolerations[2].key=c", pod+"tolerations[3].key=d")
	if err != nil {
		t.Fatal(err)
	}
	if n := at(t, got, "spec.tfReplicaSpecs.Chief.replicas"); n != int64(1) {
		t.Errorf("got %v", n)
	}
	if items, _ := at(t, got, pod+"tolerations").([]any); len(items) != 4 {
		t.Errorf("got %v", items)
	}
}

// No input makes an object that its type cannot read, and a path is read as it is written.
func FuzzApply(f *testing.F) {
	for _, assignment := range []string{worker + "replicas=4", pod + `tolerations=[{"key":"a"}]`, `metadata.labels.a\.b/c=d`, container + "env[0].value==", "spec.a[0]-",
		container + "livenessProbe.httpGet.port=1", pod + `affinity={"nodeAffinity":{}}`, `a\\.b[0][1]=x`, "spec.runPolicy.ttlSecondsAfterFinished=-1", pod + "volumes[0].name=x"} {
		f.Add(assignment)
	}
	f.Fuzz(func(t *testing.T, assignment string) {
		a, err := parse(assignment)
		if err != nil {
			return
		}
		if !a.Remove {
			again, err := parse(a.Path.String() + "=" + a.Value)
			if err != nil || cmp.Diff(a, again) != "" {
				t.Errorf("%q is %+v, but written again %+v, %v", assignment, a, again, err)
			}
		}
		object, err := Apply(job(t), kubeflowv1.TFJob{}, assignment)
		if err != nil {
			return
		}
		fits(t, assignment, object)
		if a.Remove == (at(t, object, a.Path.String()) != nil) && a.Path[len(a.Path)-1].Index < 0 {
			t.Errorf("%q made %v", assignment, at(t, object, a.Path.String()))
		}
	})
}

// Of a kind whose type is not known here the object shows what is a list, a map or a text.
func TestApplyToAKindWithoutType(t *testing.T) {
	jobset := map[string]any{"spec": map[string]any{
		"suspend": false,
		"replicatedJobs": []any{map[string]any{
			"name": "worker", "replicas": int64(2), "labels": map[string]any{"rank": "1"},
		}},
	}}
	for assignment, want := range map[string]any{
		"spec.suspend=true":                              true,
		"spec.replicatedJobs[0].replicas=4":              int64(4),
		"spec.replicatedJobs[0].labels.rank=2":           "2",
		"spec.replicatedJobs[0].groupName=head":          "head",
		"spec.replicatedJobs[1]={\"name\":\"x\"}":        map[string]any{"name": "x"},
		"spec.failurePolicy.maxRestarts=3":               int64(3),
		"spec.failurePolicy.rules[0]={\"action\":\"a\"}": map[string]any{"action": "a"},
		"metadata.labels.team=7":                         "7",
		"spec.replicatedJobs.name=x":                     "is a list: name the item",
		"spec.suspend.x=1":                               "is no map in the object",
		"spec.suspend[0]=1":                              "is no list in the object",
		"spec.replicatedJobs[3].name=x":                  "the list has 1 items",
		"spec.gone-":                                     "is not there",
		"status.x=1":                                     "the status is the controller's to write",
	} {
		changed, err := Apply(jobset, nil, assignment)
		if err != nil {
			if text, ok := want.(string); !ok || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", assignment, err)
			}
			continue
		}
		path, _, _ := strings.Cut(assignment, "=")
		if got := at(t, changed, path); !cmp.Equal(want, got) {
			t.Errorf("%s: got %v of type %T", assignment, got, got)
		}
	}
}
