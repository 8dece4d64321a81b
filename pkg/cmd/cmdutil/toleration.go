package cmdutil

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// Tolerations reads the values of --toleration; example is one for the hint.
func Tolerations(texts []string, example string) (all []corev1.Toleration, err error) {
	for _, text := range texts {
		t, problems := toleration(text)
		if len(problems) > 0 {
			return nil, failure.Usagef("--toleration %q: %s", text, strings.Join(problems, "; ")).WithHint("for example: --toleration %s", example)
		}
		all = append(all, t)
	}
	return all, nil
}

// toleration reads KEY[=VALUE][:EFFECT], as `kubectl taint` writes taints: without a value every value is tolerated, without an effect every effect. A value of all
// tolerates everything.
func toleration(text string) (t corev1.Toleration, problems []string) {
	if text == "all" {
		return corev1.Toleration{Operator: corev1.TolerationOpExists}, nil
	}
	taint, effect, hasEffect := strings.Cut(text, ":")
	key, value, hasValue := strings.Cut(taint, "=")
	t = corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffect(effect)}
	if hasValue {
		t.Operator, t.Value = corev1.TolerationOpEqual, value
	}
	for _, problem := range content.IsLabelKey(key) {
		problems = append(problems, fmt.Sprintf("key %q: %s", key, problem))
	}
	for _, problem := range content.IsLabelValue(value) {
		problems = append(problems, fmt.Sprintf("value %q: %s", value, problem))
	}
	switch t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		if hasEffect {
			problems = append(problems, fmt.Sprintf("effect %q: must be NoSchedule, PreferNoSchedule or NoExecute", effect))
		}
	}
	return t, problems
}
