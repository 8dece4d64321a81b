package queueing

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// What Kueue leaves out of account, or counts as something else, is scaled to pods that request other amounts.
func TestCount(t *testing.T) {
	list := clustertest.List
	counted := func(pairs ...any) map[corev1.ResourceName]float64 {
		m := map[corev1.ResourceName]float64{}
		for i := 0; i < len(pairs); i += 2 {
			m[corev1.ResourceName(pairs[i].(string))] = pairs[i+1].(float64)
		}
		return m
	}
	for name, tt := range map[string]struct {
		before  corev1.ResourceList
		counted map[corev1.ResourceName]float64
		now     corev1.ResourceList
		want    corev1.ResourceList
	}{
		"nothing is known":               {nil, nil, list("cpu", "1", "rdma/hca", "1"), list("cpu", "1", "rdma/hca", "1")},
		"a device is left out":           {list("cpu", "1", "rdma/hca", "1"), counted("cpu", 1000.0), list("cpu", "2", "rdma/hca", "4"), list("cpu", "2")},
		"a device counts as another":     {list("cpu", "1", "mig/3g", "1"), counted("cpu", 1000.0, "credits", 40.0), list("cpu", "1", "mig/3g", "2"), list("cpu", "1", "credits", "80")},
		"and as itself":                  {list("mig/3g", "1"), counted("mig/3g", 1.0, "credits", 40.0), list("mig/3g", "3"), list("mig/3g", "3", "credits", "120")},
		"more is counted than requested": {list("cpu", "4"), counted("cpu", 5000.0), list("cpu", "8"), list("cpu", "10")},
		"a new request counts":           {list("cpu", "1"), counted("cpu", 1000.0), list("cpu", "1", "gpu/a", "1"), list("cpu", "1", "gpu/a", "1")},
		"the device is no longer there":  {list("cpu", "1", "mig/3g", "1"), counted("cpu", 1000.0, "credits", 40.0), list("cpu", "1"), list("cpu", "1", "credits", "0")},
	} {
		t.Run(name, func(t *testing.T) {
			got := counting{requests: tt.before, counted: tt.counted}.count(tt.now)
			if len(got) != len(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			for name, q := range tt.want {
				if is := got[name]; request.Amount(name, is) != request.Amount(name, q) {
					t.Errorf("%s: got %s, want %s", name, is.String(), q.String())
				}
			}
		})
	}
}
