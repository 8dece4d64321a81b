// Package order is the order in which those of one priority are served who wait for nodes. The engine's queue goes by it, the
// choice of who gets a reservation, and what is reported of either. It is pure: clocks are given.
package order

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

// Policy is a rule by which those of one priority are ordered.
type Policy string

// The policies.
const (
	// HighestResponseRatio serves first whose response ratio is highest (HRRN): the time that a gang waits and runs over the time that
	// it runs. Short gangs come soon, and everybody comes, because the ratio grows as long as one waits.
	HighestResponseRatio Policy = "HighestResponseRatio"
	// FirstComeFirstServed serves first who has waited longest.
	FirstComeFirstServed Policy = "FirstComeFirstServed"
)

// Known reports whether there is such a policy.
func (p Policy) Known() bool { return p == HighestResponseRatio || p == FirstComeFirstServed }

// Basis is the source of an expected runtime.
type Basis string

// What a runtime is known from.
const (
	// Deadline: activeDeadlineSeconds, after which the kubelet ends the pod.
	Deadline Basis = "deadline"
	// Annotation: the promise of gangctl.dev/expected-runtime.
	Annotation Basis = "annotation"
	// Learnt: what gangs of the same owner and shape ran.
	Learnt Basis = "learnt"
	// Unknown: nothing is known, and Neutral is taken.
	Unknown Basis = ""
)

const (
	// Neutral is the runtime of which those are taken to be whose runtime is not known. Among these the order is that in which they
	// came. It is long, so that a declared runtime delays none but those that run for more than a day.
	Neutral = 24 * time.Hour
	// Shortest is the least runtime that counts: what is shorter is dominated by the time to start, and a runtime of a second would
	// put anybody first who writes it.
	Shortest = time.Minute
)

// Estimate is how long a gang is expected to run.
type Estimate struct {
	Runtime time.Duration
	Basis   Basis
}

// Entry is a gang that waits for nodes, or a pod on its own.
type Entry struct {
	// Name breaks ties: NAMESPACE/NAME.
	Name     string
	Priority int32
	// Since is when it began to wait for nodes.
	Since    time.Time
	Expected Estimate
}

// Compare returns -1 if a is served before b, 1 if after, at one moment: as time goes on, two may change places, once.
func (p Policy) Compare(a, b Entry, now time.Time) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if p == HighestResponseRatio {
		if c := cmp.Compare(b.Ratio(now), a.Ratio(now)); c != 0 {
			return c
		}
	}
	return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Name, b.Name))
}

// Ratio is the response ratio: 1 for who has just come, 2 for who has waited for as long as it will run.
func (e Entry) Ratio(now time.Time) float64 {
	return 1 + float64(e.wait(now))/float64(e.runtime())
}

func (e Entry) wait(now time.Time) time.Duration { return max(0, now.Sub(e.Since)) }

func (e Entry) runtime() time.Duration {
	if e.Expected.Basis == Unknown {
		return Neutral
	}
	return max(Shortest, e.Expected.Runtime)
}

// Describe is the place of an entry in the order, as in: response ratio 3.2: waited 2h, expected to run 54m by its deadline.
func (p Policy) Describe(e Entry, now time.Time) string {
	waited := "waited " + phrase.Age(e.wait(now))
	if p != HighestResponseRatio {
		return "first come, first served: " + waited
	}
	return fmt.Sprintf("response ratio %.1f: %s, %s", e.Ratio(now), waited, e.Expected)
}

// Rule is what does not change while one waits: by what it has its place.
func (p Policy) Rule(e Estimate) string {
	if p != HighestResponseRatio {
		return "its wait"
	}
	return fmt.Sprintf("response ratio (%s)", e)
}

// String is the estimate in a sentence.
func (e Estimate) String() string {
	switch e.Basis {
	case Deadline:
		return "expected to run " + phrase.Age(e.Runtime) + " by its deadline"
	case Annotation:
		return "expected to run " + phrase.Age(e.Runtime) + " by its annotation"
	case Learnt:
		return "expected to run " + phrase.Age(e.Runtime) + " as those before it did"
	}
	return "expected runtime not known, taken for " + phrase.Age(Neutral)
}

// Refused is why a pod has no node, and since when by its own condition: that is the time when it had none for the first time,
// whatever the reason was, and some API servers leave it out for pods that begin with a gate. The reason is empty where no scheduler
// refused it.
func Refused(pod *corev1.Pod) (reason string, since time.Time) {
	_, condition := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
	if condition == nil || condition.Status != corev1.ConditionFalse {
		return "", time.Time{}
	}
	return condition.Reason, condition.LastTransitionTime.Time
}
