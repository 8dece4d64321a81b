package gang

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// RuntimeAnnotation on a pod is how long it runs at most, as a duration from its start ("90m"), for pods that do not want activeDeadlineSeconds to
// kill them. It is a promise: nothing ends the pod then.
const RuntimeAnnotation = "gangctl.dev/expected-runtime"

// RuntimeLimit is how long a pod of some annotations and spec runs at most by its own declaration, from its start. At its deadline its grace begins, in
// which it keeps its node: what that has more than the usual counts, too. Promised reports that it is a promise.
func RuntimeLimit(annotations map[string]string, spec *corev1.PodSpec) (limit time.Duration, promised, limited bool) {
	if seconds := spec.ActiveDeadlineSeconds; seconds != nil {
		grace := max(0, ptr.Deref(spec.TerminationGracePeriodSeconds, 0)-corev1.DefaultTerminationGracePeriodSeconds)
		return atMost(*seconds) + atMost(grace), false, true
	}
	text := annotations[RuntimeAnnotation]
	if text == "" {
		return 0, false, false
	}
	d, err := time.ParseDuration(text)
	return d, true, err == nil && d > 0
}

// atMost is a number of seconds that users write, as a duration of a hundred years at most: two of them have a sum.
func atMost(seconds int64) time.Duration { return min(Seconds(seconds), 100*365*24*time.Hour) }
