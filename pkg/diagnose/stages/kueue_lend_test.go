package stages_test

import (
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// What a queue of the cohort has unused and does not lend is named, and who could change that.
func TestKueueDoesNotLend(t *testing.T) {
	of := func(lends, nominal string, used string) func(*clustertest.Cluster) {
		return func(c *clustertest.Cluster) {
			c.Nodes(4, 8).LocalQueue("lq", "poor")
			c.ClusterQueue("poor", "root", gpuQuota("8"))
			c.ClusterQueue("rich", "root", clustertest.Quota{Flavor: "f", Resource: "nvidia.com/gpu", Nominal: nominal, Lend: lends})
			if used != "" {
				uses(c, "other", "rich", used)
			}
			waitsInKueue(c, 2, 8)
		}
	}
	check(t, []testCase{
		{name: "never", code: answer.QueueTooSmall, exit: 6, wantText: []string{"ClusterQueue rich of the same cohort has 32 GPUs that nobody uses, and lends no more than 0 .lendingLimit."}, fix: "raise lendingLimit of nvidia.com/gpu in flavor f of ClusterQueue rich to 8", build: of("0", "32", "")},
		{name: "too little", code: answer.QueueTooSmall, exit: 6, wantText: []string{"rich of the same cohort has 4 GPUs that nobody uses"}, not: []string{"raise lendingLimit"}, build: of("0", "4", "")},
		{name: "it uses what it does not lend", code: answer.QueueTooSmall, exit: 6, not: []string{"lendingLimit"}, build: of("0", "32", "32")},
		{name: "now", code: answer.KueueQuota, exit: 3, wantText: []string{"rich of the same cohort has 16 GPUs that nobody uses, and lends no more than 16"}, fix: "ClusterQueue rich to 24", build: func(c *clustertest.Cluster) {
			of("16", "32", "")(c)
			uses(c, "another", "poor", "16")
		}},
	})
}
