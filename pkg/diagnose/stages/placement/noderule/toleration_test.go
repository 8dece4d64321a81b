package noderule

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestTolerates(t *testing.T) {
	taint := corev1.Taint{Key: "dedicated", Value: "team", Effect: corev1.TaintEffectNoSchedule}
	exists := corev1.TolerationOpExists
	tests := []struct {
		toleration corev1.Toleration
		want       bool
		text       string
	}{
		{corev1.Toleration{Key: "dedicated", Value: "team"}, true, "dedicated=team"},
		{corev1.Toleration{Key: "dedicated", Value: "team", Effect: corev1.TaintEffectNoSchedule}, true, "dedicated=team:NoSchedule"},
		{corev1.Toleration{Key: "dedicated", Value: "team", Effect: corev1.TaintEffectNoExecute}, false, "dedicated=team:NoExecute"},
		{corev1.Toleration{Key: "dedicated", Value: "taem"}, false, "dedicated=taem"},
		{corev1.Toleration{Key: "dedicated", Operator: exists}, true, "dedicated"},
		{corev1.Toleration{Operator: exists}, true, ""},
		{corev1.Toleration{}, false, ""},
		{corev1.Toleration{Key: "other", Operator: exists}, false, "other"},
	}
	for _, tt := range tests {
		if got := tolerates(tt.toleration, taint); got != tt.want || tolerationText(tt.toleration) != tt.text {
			t.Errorf("%+v: got %v %q", tt.toleration, got, tolerationText(tt.toleration))
		}
	}
}

// Kubernetes evicts a pod by the first toleration that matches a taint.
func TestTolerated(t *testing.T) {
	taint, ten, hour := corev1.Taint{Key: "spot", Effect: corev1.TaintEffectNoExecute}, int64(10), int64(3600)
	indefinitely, briefly, longer := corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists}, corev1.Toleration{Operator: corev1.TolerationOpExists, TolerationSeconds: &ten},
		corev1.Toleration{Key: "spot", Operator: corev1.TolerationOpExists, TolerationSeconds: &hour}
	for name, tt := range map[string]struct {
		tolerations []corev1.Toleration
		seconds     int64
		limited     bool
	}{
		"none":             {nil, 0, false},
		"for good":         {[]corev1.Toleration{indefinitely, briefly}, 0, false},
		"for a time":       {[]corev1.Toleration{{Key: "other"}, briefly, indefinitely}, 10, true},
		"the first counts": {[]corev1.Toleration{longer, briefly}, 3600, true},
	} {
		if seconds, limited := tolerated(tt.tolerations, taint); seconds != tt.seconds || limited != tt.limited {
			t.Errorf("%s: got %d, %t", name, seconds, limited)
		}
	}
}

// A toleration that Kubernetes gives to every pod was not meant for the taint of a dead node; one that people wrote may have been for theirs.
func TestSlip(t *testing.T) {
	exists := corev1.TolerationOpExists
	given := []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: exists, Effect: corev1.TaintEffectNoExecute}, {Key: corev1.TaintNodeUnreachable, Operator: exists, Effect: corev1.TaintEffectNoExecute}}
	for name, tt := range map[string]struct {
		taint corev1.Taint
		own   corev1.Toleration
		want  int
	}{
		"a dead node":        {corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule}, corev1.Toleration{Key: "spot", Operator: exists}, -1},
		"another effect":     {corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}, corev1.Toleration{Key: "dedicated", Operator: exists, Effect: corev1.TaintEffectNoExecute}, 2},
		"a slip of the key":  {corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}, corev1.Toleration{Key: "dedicatd", Operator: exists}, 2},
		"it is as it should": {corev1.Taint{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}, corev1.Toleration{Key: "dedicated", Operator: exists}, -1},
	} {
		node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{tt.taint}}}
		if got := Slip([]*corev1.Node{node}, append(given[:2:2], tt.own), tt.taint); got != tt.want {
			t.Errorf("%s: got %d", name, got)
		}
	}
}
