package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// What was written for a size becomes what is written for another, and what another client wrote stays.
func TestResizeIndexed(t *testing.T) {
	env := func(framework Framework, members int32, processes string) []corev1.EnvVar {
		return frameworkEnv(Role{Replicas: members}, Spec{Name: "llama", Namespace: "team", Framework: framework, ProcessesPerNode: processes})
	}
	own := corev1.EnvVar{Name: "NUM_WORKERS", Value: "4"}
	for name, tt := range map[string]struct{ before, want []corev1.EnvVar }{
		"TensorFlow":              {env(TensorFlow, 4, ""), env(TensorFlow, 2, "")},
		"torch":                   {env(Torch, 4, ""), env(Torch, 2, "")},
		"a process for each GPU":  {env(Torch, 4, "8"), env(Torch, 2, "4")},
		"another number of those": {env(Torch, 4, "3"), env(Torch, 2, "3")},
		"another size":            {env(Torch, 6, ""), env(Torch, 6, "")},
		"none":                    {nil, nil},
	} {
		c := &corev1.Container{Env: append([]corev1.EnvVar{own}, tt.before...)}
		ResizeIndexed(c, "team", "llama", IndexedSize{Members: 4, Devices: 8}, IndexedSize{Members: 2, Devices: 4})
		if diff := cmp.Diff(append([]corev1.EnvVar{own}, tt.want...), c.Env); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
	// What stays is as the API server has completed it.
	completed := env(Torch, 2, "")
	for _, e := range completed {
		if e.ValueFrom != nil {
			e.ValueFrom.FieldRef.APIVersion = "v1"
		}
	}
	torch := &corev1.Container{Env: completed}
	before := torch.DeepCopy()
	ResizeIndexed(torch, "team", "llama", IndexedSize{Members: 2, Devices: 1}, IndexedSize{Members: 2, Devices: 2})
	if diff := cmp.Diff(before, torch); diff != "" {
		t.Errorf("nothing changes: -want +got\n%s", diff)
	}
	c := &corev1.Container{Env: env(TensorFlow, 2, "")}
	ResizeIndexed(c, "team", "llama", IndexedSize{Members: 2}, IndexedSize{Members: 1})
	if len(c.Env) > 0 {
		t.Errorf("of one member: %s", strings.TrimSpace(c.Env[0].Name))
	}
}

// Under another name members have other hosts, in whatever size; those that another client wrote stay.
func TestRepeatIndexed(t *testing.T) {
	env := func(framework Framework, name string, members int32) []corev1.EnvVar {
		return frameworkEnv(Role{Replicas: members}, Spec{Name: name, Namespace: "team", Framework: framework})
	}
	own := corev1.EnvVar{Name: "COORDINATOR", Value: "llama-0.llama.team.svc"}
	for name, tt := range map[string]struct{ before, want []corev1.EnvVar }{
		"TensorFlow":  {env(TensorFlow, "llama", 4), env(TensorFlow, "llama-2", 2)},
		"torch":       {env(Torch, "llama", 4), env(Torch, "llama-2", 2)},
		"another job": {env(Torch, "alpaca", 4), env(Torch, "alpaca", 4)},
	} {
		c := &corev1.Container{Env: append([]corev1.EnvVar{own}, tt.before...)}
		RepeatIndexed(c, "team", "llama", "llama-2", IndexedSize{Members: 4}, IndexedSize{Members: 2})
		if diff := cmp.Diff(append([]corev1.EnvVar{own}, tt.want...), c.Env); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}
