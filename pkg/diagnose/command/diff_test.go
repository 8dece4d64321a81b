package command

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func spec(edit func(*corev1.PodSpec)) corev1.PodSpec {
	s := corev1.PodSpec{NodeSelector: map[string]string{"a": "1", "example.com/b~c": "2"},
		Containers: []corev1.Container{{Name: "main", Image: "x", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")}}}}}
	if edit != nil {
		edit(&s)
	}
	return s
}

func TestDiff(t *testing.T) {
	tests := map[string]struct {
		edit func(*corev1.PodSpec)
		want string
	}{
		"nothing": {nil, `null`},
		"a value": {func(s *corev1.PodSpec) { s.Containers[0].Image = "y" }, `[{"op":"replace","path":"/spec/containers/0/image","value":"y"}]`},
		"a key is removed, escaped": {func(s *corev1.PodSpec) { delete(s.NodeSelector, "example.com/b~c") },
			`[{"op":"remove","path":"/spec/nodeSelector/example.com~1b~0c"}]`},
		"the last key": {func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{} }, `[{"op":"remove","path":"/spec/nodeSelector"}]`},
		"a field that was not there": {func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Key: "k"}} },
			`[{"op":"add","path":"/spec/tolerations","value":[{"key":"k"}]}]`},
		"a longer list": {func(s *corev1.PodSpec) { s.Containers = append(s.Containers, corev1.Container{Name: "side"}) },
			`[{"op":"replace","path":"/spec/containers","value":[{"image":"x","name":"main","resources":{"requests":{"cpu":"4","memory":"8Gi"}}},{"name":"side","resources":{}}]}]`},
		"one of two amounts": {func(s *corev1.PodSpec) { s.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") },
			`[{"op":"replace","path":"/spec/containers/0/resources/requests/cpu","value":"2"}]`},
		"both amounts": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")}
		}, `[{"op":"replace","path":"/spec/containers/0/resources/requests","value":{"cpu":"2","memory":"4Gi"}}]`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			steps, err := Diff("/spec", spec(nil), spec(tt.edit))
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(steps)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A short patch is worth more than a fine one, but only where the whole is small and known.
func TestDiffStaysFineInsideLargeThings(t *testing.T) {
	steps, err := Diff("", map[string]any{"spec": spec(nil)}, map[string]any{"spec": spec(func(s *corev1.PodSpec) {
		s.Containers[0].Image, s.Containers[0].Name = "y", "other"
	})})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range steps {
		if strings.Count(step.Path, "/") < 4 {
			t.Errorf("replaces all of %s", step.Path)
		}
	}
	if len(steps) != 2 {
		t.Errorf("got %v", steps)
	}
}

func TestDiffOfWhatCannotBeWritten(t *testing.T) {
	if _, err := Diff("/x", make(chan int), 1); err == nil || !strings.Contains(err.Error(), "encode chan int") {
		t.Errorf("got %v", err)
	}
}
