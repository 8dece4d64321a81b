package stages_test

import (
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/gang"
)

func TestGangScheduler(t *testing.T) {
	tests := map[string]struct {
		build func(*clustertest.Cluster)
		want  string
	}{
		"nothing is to be seen":           {func(c *clustertest.Cluster) { c.S.Deployments, c.S.Leases = nil, nil }, "gang-scheduler"},
		"a lease alone":                   {func(c *clustertest.Cluster) { c.S.Deployments = nil }, "gang-scheduler"},
		"the operator's, and it serves":   {func(*clustertest.Cluster) {}, "gang"},
		"the operator's, which is absent": {func(c *clustertest.Cluster) { c.S.Deployments = c.S.Deployments[:1] }, "gang-scheduler"},
		"ours under another name": {func(c *clustertest.Cluster) {
			c.GangScheduler("")
		}, "gang"},
		"preferred serves too": {func(c *clustertest.Cluster) {
			c.Deployment("ml", "mine", "mine:v1", "--scheduler-name=gang-scheduler")
		}, "gang-scheduler"},
		"the operator's is of another dialect": {func(c *clustertest.Cluster) {
			c.S.Deployments = c.S.Deployments[:1]
			c.GangScheduler("volcano")
			c.Deployment("volcano-system", "volcano-scheduler", "volcanosh/vc-scheduler:v1", "--scheduler-name=volcano")
		}, "gang-scheduler"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New()
			tt.build(c)
			if got := component.GangScheduler(view.New(c.Done()), gang.SchedulerPlugins, "gang-scheduler"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
