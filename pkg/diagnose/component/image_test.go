package component

import "testing"

func TestIsImage(t *testing.T) {
	for _, tt := range []struct {
		image, part string
		want        bool
	}{
		{"quay.io/kuberay/operator:v1.4.2", "kuberay/operator", true},
		{"registry:5000/mirror/kuberay/operator@sha256:abc", "kuberay/operator", true},
		{"kuberay/operator", "kuberay/operator", true},
		{"quay.io/notkuberay/operator:v1", "kuberay/operator", false},
		{"quay.io/kuberay/operator-tools:v1", "kuberay/operator", false},
		{"operator", "kuberay/operator", false},
		{"docker.io/kubeflow/training-operator:v1", "training-operator", true},
		{"docker.io/training-operator/other:v1", "training-operator", false},
	} {
		if got := isImage(tt.image, tt.part); got != tt.want {
			t.Errorf("%s is %s: got %v", tt.image, tt.part, got)
		}
	}
}
