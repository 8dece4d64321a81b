package belowmin

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Annotation is the policy of a gang that stays below its minimum, on its object, or
// where it has none on its pods.
const Annotation = "gangctl.dev/below-min-policy"

// Policy is how a gang is treated that ran and stays below its minimum.
type Policy string

const (
	// Hold lets the members that are left continue. The nodes of the others are
	// reserved for a time.
	Hold Policy = "hold"
	// Evict evicts all members, and has the gang wait as a whole.
	Evict Policy = "evict"
	// Ignore treats the members as if they were in no gang: no node is reserved and no
	// member is evicted.
	Ignore Policy = "ignore"
)

func (p Policy) valid() bool { return p == Hold || p == Evict || p == Ignore }

// Args are the plugin's arguments in a KubeSchedulerConfiguration.
type Args struct {
	// BelowMin is the policy of a gang without the annotation: hold (the default),
	// evict or ignore.
	BelowMin Policy `json:"belowMin"`
	// Grace is how long a gang may stay below its minimum; by default five minutes.
	Grace metav1.Duration `json:"grace"`
	// StartGrace is how long a gang may take from its first member's binding to
	// that of as many as it requires; by default one minute. What there is of it is
	// then rolled back, or before, if it is proven that it cannot be completed.
	StartGrace metav1.Duration `json:"startGrace"`
}

// DefaultArgs returns the arguments where a configuration sets none.
func DefaultArgs() Args {
	return Args{
		BelowMin: Hold,
		Grace:    metav1.Duration{Duration: 5 * time.Minute}, StartGrace: metav1.Duration{Duration: time.Minute},
	}
}

// Validate implements args.Args.
func (a Args) Validate() error {
	if !a.BelowMin.valid() {
		return fmt.Errorf("belowMin: %q is none of %s, %s and %s", a.BelowMin, Hold, Evict, Ignore)
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"grace", a.Grace.Duration}, {"startGrace", a.StartGrace.Duration}} {
		if d.value <= 0 {
			return fmt.Errorf("%s: %s is not a positive duration", d.field, d.value)
		}
	}
	return nil
}

// graceOf returns how long a gang may stay below its minimum that was evicted some
// times. One that was never whole, and of which it is proven that it cannot be
// completed now, keeps its nodes for nothing.
func (a Args) graceOf(never, provablyShort bool, evictions int) time.Duration {
	switch {
	case never && provablyShort:
		return 0
	case never:
		return doubled(a.StartGrace.Duration, evictions)
	}
	return doubled(a.Grace.Duration, evictions)
}

// doubled is a grace after some evictions: each doubles it, up to maxGrace, unless it is longer from the start.
func doubled(grace time.Duration, evictions int) time.Duration {
	for range evictions {
		if grace >= maxGrace/2 {
			return max(grace, maxGrace)
		}
		grace *= 2
	}
	return grace
}

// PolicyOf returns the policy of a gang, its own or that of the configuration. An
// annotation that is not valid is returned, too, and does not count.
func (c *Controller) PolicyOf(key gang.Key) (policy Policy, invalid string) {
	pods := c.Gangs.Pods(key)
	a, _ := c.args(pods)
	policy = a.BelowMin
	text, ok := c.annotation(key, pods)
	switch {
	case !ok:
		return policy, ""
	case Policy(text).valid():
		return Policy(text), ""
	}
	return policy, text
}

// annotation returns the annotation of the object, or of the first pod that has one.
func (c *Controller) annotation(key gang.Key, pods []*corev1.Pod) (value string, ok bool) {
	if _, u, exists := c.Objects.Get(key); exists && u != nil {
		if value, ok = u.GetAnnotations()[Annotation]; ok {
			return value, true
		}
	}
	for _, pod := range pods {
		if value, ok = pod.Annotations[Annotation]; ok {
			return value, true
		}
	}
	return "", false
}

// args returns the arguments of the profile of a gang's pods; ok is false, with the
// defaults, where the profile is without the plugin.
func (c *Controller) args(pods []*corev1.Pod) (a Args, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, pod := range pods {
		if a, ok = c.profiles[pod.Spec.SchedulerName]; ok {
			return a, true
		}
	}
	return DefaultArgs(), false
}
