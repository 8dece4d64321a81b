package component

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/gang"
)

// Tenants decide how many schedulers the members of a gang name: no more than some are looked for.
func TestManySchedulers(t *testing.T) {
	c := clustertest.New().Nodes(1, 8).Add(clustertest.Gang{
		Name: "gang", Workers: 20, Dialect: gang.Volcano,
		Pod: func(i int, p *corev1.Pod) { p.Spec.SchedulerName = fmt.Sprintf("kai-scheduler-%d", i) },
	})
	for _, pod := range c.S.Pods {
		if pod.Name == "gang-worker-1" {
			pod.Spec.SchedulerName = "kai-scheduler"
		}
	}
	v := view.New(c.Done())
	job, err := v.Find(view.Query{Namespace: "team", Name: "gang"})
	if err != nil {
		t.Fatal(err)
	}
	g := v.Gang(job)
	if b, ok := BypassOf(v, g); !ok || len(b.Placed)+len(b.Waiting) > MaxSchedulers {
		t.Errorf("%v: placed by %v, waiting for %v", ok, b.Placed, b.Waiting)
	}
}
