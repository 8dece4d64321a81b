package view

import (
	"fmt"
	"testing"

	"github.com/gangctl/gangctl/pkg/placement"
)

// However many changes are combined, no more than some of the clusters that they make are kept.
func TestDerivedClustersAreBounded(t *testing.T) {
	w := New(someJobs(t))
	from, made := w.Cluster(), 0
	for i := range 3 * maxCommon {
		w.Derived(from, fmt.Sprint(i), func() *placement.Cluster {
			made++
			return from.WithoutNodes("n0")
		})
	}
	w.Derived(from, "0", func() *placement.Cluster {
		t.Error("the first is made again")
		return from
	})
	if made != 3*maxCommon || len(w.common) > maxCommon {
		t.Errorf("%d are made, and %d kept", made, len(w.common))
	}
}
