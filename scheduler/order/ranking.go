package order

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Limits are how long pods run at most by their own declaration, where that is to be trusted; *claims.Ledger is it.
type Limits interface {
	// Limit returns the limit, and whether the kubelet enforces it; ok is false without one.
	Limit(pod *corev1.Pod) (limit time.Duration, enforced, ok bool)
}

// Ranking orders those who wait by a policy, and knows how long they are expected to run.
type Ranking struct {
	policy  Policy
	limits  Limits
	history *History
}

// NewRanking returns one that goes by what pods declare, else by what their like ran.
func NewRanking(policy Policy, limits Limits, history *History) *Ranking {
	return &Ranking{policy: policy, limits: limits, history: history}
}

// Compare is that of the policy.
func (r *Ranking) Compare(a, b Entry, now time.Time) int { return r.policy.Compare(a, b, now) }

// Policy is the policy.
func (r *Ranking) Policy() Policy { return r.policy }

// Rule is that of the policy.
func (r *Ranking) Rule(e Estimate) string { return r.policy.Rule(e) }

// Expect is how long a gang runs whose members these are: as long as the last of them. A limit counts if all have one, or a
// launcher that ends soon would speed up workers that do not.
func (r *Ranking) Expect(members []*corev1.Pod) Estimate {
	if len(members) == 0 || r.policy != HighestResponseRatio {
		return Estimate{}
	}
	declared := Estimate{Basis: Deadline}
	for _, pod := range members {
		limit, enforced, ok := r.limits.Limit(pod)
		if !ok {
			return r.learnt(members)
		}
		declared.Runtime = max(declared.Runtime, limit)
		if !enforced {
			declared.Basis = Annotation
		}
	}
	return declared
}

func (r *Ranking) learnt(members []*corev1.Pod) Estimate {
	if r.history.empty() {
		return Estimate{} // the class costs more than all else
	}
	if runtime, ok := r.history.Expect(ClassOf(members)); ok {
		return Estimate{Runtime: runtime, Basis: Learnt}
	}
	return Estimate{}
}
