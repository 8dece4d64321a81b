package policy

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A gang whose members are being bound, or may have been, is left alone until
// that is over.
func TestAGangOnTheWayIsLeftAlone(t *testing.T) {
	w := newWorld(t, short)
	onTheWay := true
	w.OnTheWay = func(group types.NamespacedName) bool {
		return onTheWay && group == types.NamespacedName{Namespace: "ns", Name: keyA.VirtualName()}
	}
	w.pod("a-0", 0, 1)
	w.pod("a-1", 0, 1)
	w.pod("a-2", 0, -1)
	w.after(0)
	w.after(20 * time.Second)
	w.wantDid()
	onTheWay = false
	w.after(9 * time.Second) // for which it may be tried again
	w.wantDid()
	w.after(time.Second)
	w.wantDid("patch pods/status a-0", "delete pods a-0", "patch pods/status a-1", "delete pods a-1")
}
