package stages

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// koordinatorQuota is the label by which a pod of Koordinator names its quota.
const koordinatorQuota = "quota.scheduling.koordinator.sh/name"

// elasticQuotas are those that hold for the gang: one that its pods name, and those of scheduler-plugins in its namespace.
func (c *climb) elasticQuotas() []string {
	var all []string
	for _, m := range c.g.Members {
		if m.Pod != nil && m.Pod.Labels[koordinatorQuota] != "" {
			all = append(all, "Koordinator's ElasticQuota "+m.Pod.Labels[koordinatorQuota])
			break
		}
	}
	for _, u := range c.w.Snap.Custom[schema.GroupKind{Group: "scheduling.x-k8s.io", Kind: "ElasticQuota"}] {
		if u.GetNamespace() == c.g.Meta.Namespace {
			all = append(all, "ElasticQuota "+u.GetName())
		}
	}
	slices.Sort(all)
	return all
}

// quotaTold is how old a scheduler's words about a quota may be to count: it tries again all the time.
const quotaTold = 2 * time.Minute

// quotaSaid: a quota of the scheduler's own holds the gang, whose arithmetic is not known here; only the scheduler tells.
func (c *climb) quotaSaid() {
	quotas := c.elasticQuotas()
	if len(quotas) == 0 {
		return
	}
	for _, e := range c.w.PodEvents(c.g) {
		if e.Reason != "FailedScheduling" || c.w.Age(e.Last) > quotaTold {
			continue
		}
		if strings.Contains(strings.ToLower(e.Message), "quota") {
			c.add(*found(answer.StageQueue, answer.QueueQuota, answer.Waiting, answer.Nobody, "%s does not let it start, says the scheduler: %s", joinAnd(quotas), e.Message).
				since(e.First).fact("quotas", quotas))
		}
		return // the latest words count
	}
}
