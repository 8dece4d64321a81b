package convert

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/internal/golden"
)

func object(t testing.TB, text []byte) *unstructured.Unstructured {
	t.Helper()
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return u
}

// Every file under testdata becomes its golden file, with its golden messages.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".in.yaml"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			in := object(t, text)
			before := in.DeepCopy()
			c, err := TFJob(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, in); diff != "" {
				t.Errorf("the object given was changed:\n%s", diff)
			}
			got, err := yaml.Marshal(c.Job.Object)
			if err != nil {
				t.Fatal(err)
			}
			var header strings.Builder
			for _, line := range c.Changes {
				header.WriteString("# changed: " + line + "\n")
			}
			for _, line := range c.Notes {
				header.WriteString("# note: " + line + "\n")
			}
			got = append([]byte(header.String()), got...)
			golden.Compare(t, strings.Replace(path, ".in.", ".out.", 1), string(got))
			// What comes out is one of today's, to the last field.
			job := &kubeflowv1.TFJob{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(c.Job.Object, job, true); err != nil {
				t.Errorf("no TFJob of %s: %v", kubeflowv1.GroupVersion, err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"the first version": {"apiVersion: kubeflow.org/v1alpha1\nkind: TFJob\nspec: {replicaSpecs: []}\n", "kubeflow.org/v1alpha1 cannot be converted: gangctl converts TFJobs from v1alpha2 on"},
		"a later version":   {"apiVersion: kubeflow.org/v3\nkind: TFJob\n", "kubeflow.org/v3 is no version of TFJob that gangctl knows: v1alpha2, v1beta1, v1beta2 and v1 are"},
		"a contradiction": {"apiVersion: kubeflow.org/v1\nkind: TFJob\nspec: {backoffLimit: 3, runPolicy: {backoffLimit: 4}}\n",
			"spec.backoffLimit is 3, but spec.runPolicy.backoffLimit is 4: leave out one of them"},
		"no policy": {"apiVersion: kubeflow.org/v1\nkind: TFJob\nspec: {backoffLimit: 3, runPolicy: [4]}\n", "spec.runPolicy: must be a map of fields"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := TFJob(object(t, []byte(tt.text)))
			if err == nil || err.Error() != tt.want {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, ErrTooOld) != strings.Contains(tt.want, "cannot be converted") {
				t.Errorf("the cause: %v", err)
			}
		})
	}
}

func TestReads(t *testing.T) {
	for gvk, want := range map[schema.GroupVersionKind]bool{
		{Group: "kubeflow.org", Version: "v1", Kind: "TFJob"}: true, {Group: "kubeflow.org", Version: "v1alpha1", Kind: "TFJob"}: true,
		{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}: false, {Group: "example.com", Version: "v1", Kind: "TFJob"}: false,
	} {
		if Reads(gvk) != want {
			t.Errorf("%v: got %v", gvk, !want)
		}
	}
}

// Known has every field of today's spec, and the moved ones where they were.
func TestKnown(t *testing.T) {
	known := reflect.TypeFor[KnownSpec]()
	if f, ok := known.FieldByName("TFJobSpec"); !ok || f.Type != reflect.TypeFor[kubeflowv1.TFJobSpec]() {
		t.Error("today's fields are missing")
	}
	policy := reflect.TypeFor[kubeflowv1.RunPolicy]()
	for _, name := range movedPolicies() {
		field := func(of reflect.Type) (reflect.StructField, bool) {
			return of.FieldByNameFunc(func(f string) bool { return strings.EqualFold(f, name) })
		}
		old, ok := field(known)
		now, okNow := field(policy)
		if !ok || !okNow || old.Type != now.Type || old.Tag != now.Tag {
			t.Errorf("%s: %v, %v", name, old, now)
		}
	}
}

// Whatever a job holds, nothing gets lost, and converting it again changes nothing.
func FuzzTFJob(f *testing.F) {
	f.Add("v1beta1", `{"cleanPodPolicy":"None","tfReplicaSpecs":{"Worker":{"template":{"spec":{"restartPolicy":"OnFailure"}}}}}`)
	f.Add("v1", `{"backoffLimit":null,"runPolicy":null,"other":{"a":[1,"x",null]}}`)
	f.Add("v1alpha2", `{"cleanPodDelay":"5s","runPolicy":"x","ttlSecondsAfterFinished":60}`)
	f.Add("v1beta2", `{"activeDeadlineSeconds":5,"runPolicy":{"activeDeadlineSeconds":5,"suspend":true}}`)
	f.Fuzz(func(t *testing.T, version, spec string) {
		var content any
		if json.Unmarshal([]byte(spec), &content) != nil {
			return
		}
		raw, err := json.Marshal(map[string]any{"apiVersion": "kubeflow.org/" + version, "kind": "TFJob", "spec": content, "kept": true})
		if err != nil {
			t.Fatal(err)
		}
		in := &unstructured.Unstructured{}
		if in.UnmarshalJSON(raw) != nil {
			return
		}
		c, err := TFJob(in)
		if err != nil {
			return
		}
		again, err := TFJob(c.Job)
		if err != nil || !reflect.DeepEqual(again.Job, c.Job) || len(again.Changes) > 0 {
			t.Fatalf("converted again: %v, %v, %v", again, err, cmp.Diff(c.Job, again.Job))
		}
		was, _ := in.Object["spec"].(map[string]any)
		is, _ := c.Job.Object["spec"].(map[string]any)
		policy, _ := is["runPolicy"].(map[string]any)
		for key, value := range was {
			switch {
			case key == "cleanPodDelay", value == nil:
			case slices.Contains(movedPolicies(), key):
				if !reflect.DeepEqual(policy[key], value) {
					t.Errorf("%s: %v became %v", key, value, policy[key])
				}
			case key == "runPolicy":
				old, _ := value.(map[string]any)
				for name, v := range old {
					if v != nil && !reflect.DeepEqual(policy[name], v) {
						t.Errorf("runPolicy.%s: %v became %v", name, v, policy[name])
					}
				}
			case !reflect.DeepEqual(is[key], value):
				t.Errorf("%s: %v became %v", key, value, is[key])
			}
		}
		if c.Job.Object["kept"] != true {
			t.Error("a field next to the spec is lost")
		}
	})
}
