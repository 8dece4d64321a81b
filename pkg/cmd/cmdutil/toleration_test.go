package cmdutil

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestToleration(t *testing.T) {
	tests := map[string]corev1.Toleration{
		"infra":                            {Key: "infra", Operator: corev1.TolerationOpExists},
		"example.com/infra:NoExecute":      {Key: "example.com/infra", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		"infra=yes:NoSchedule":             {Key: "infra", Operator: corev1.TolerationOpEqual, Value: "yes", Effect: corev1.TaintEffectNoSchedule},
		"infra=":                           {Key: "infra", Operator: corev1.TolerationOpEqual},
		"all":                              {Operator: corev1.TolerationOpExists},
		"node.kubernetes.io/infra=a-b.c_d": {Key: "node.kubernetes.io/infra", Operator: corev1.TolerationOpEqual, Value: "a-b.c_d"},
	}
	for text, want := range tests {
		if got, err := Tolerations([]string{text}, ""); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": `key ""`, "a b": `key "a b"`, "=x": `key ""`, "infra=a b": `value "a b"`, "infra:Never": `effect "Never": must be`, "infra:": `effect "": must be`,
		"a b=c d:e": `key "a b": `,
	} {
		if _, err := Tolerations([]string{"infra", text}, "infra"); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("--toleration %q: %s", text, want)) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
