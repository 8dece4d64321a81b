package claims

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang/request"
)

// Amounts are the requests of pods for each resource, and how many they are. Zero amounts are left out.
type Amounts map[corev1.ResourceName]int64

// AmountsOf are those of one pod.
func AmountsOf(pod *corev1.Pod) Amounts {
	a := Amounts{corev1.ResourcePods: 1}
	for name, quantity := range request.Of(pod) {
		if amount := request.Amount(name, quantity); amount != 0 && name != corev1.ResourceEphemeralStorage {
			a[name] = amount
		}
	}
	return a
}

// Plus returns the sum with n times others.
func (a Amounts) Plus(b Amounts, n int64) Amounts {
	sum := Amounts{}
	maps.Copy(sum, a)
	sum.add(b, n)
	return sum
}

// add adds n times others.
func (a Amounts) add(b Amounts, n int64) {
	for name, amount := range b {
		if a[name] += n * amount; a[name] == 0 {
			delete(a, name)
		}
	}
}

// Within reports whether none is larger than the other.
func (a Amounts) Within(b Amounts) bool {
	for name, amount := range a {
		if amount > b[name] {
			return false
		}
	}
	return true
}

// AtLeast is the larger of two amounts, of each resource.
func (a Amounts) AtLeast(b Amounts) Amounts {
	larger := Amounts{}
	maps.Copy(larger, a)
	for name, amount := range b {
		larger[name] = max(larger[name], amount)
	}
	return larger
}
