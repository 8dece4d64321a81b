package install

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// toleration reads KEY[=VALUE][:EFFECT], as `kubectl taint` writes taints: without a value every value is tolerated, without an
// effect every effect.
func toleration(text string) (corev1.Toleration, error) {
	taint, effect, hasEffect := strings.Cut(text, ":")
	key, value, hasValue := strings.Cut(taint, "=")
	t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	if hasValue {
		t.Operator, t.Value = corev1.TolerationOpEqual, value
	}
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return t, fmt.Errorf("key %q: %s", key, problems[0])
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return t, fmt.Errorf("value %q: %s", value, problems[0])
	}
	switch t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		if hasEffect {
			return t, fmt.Errorf("effect %q: must be NoSchedule, PreferNoSchedule or NoExecute", effect)
		}
	}
	return t, nil
}
