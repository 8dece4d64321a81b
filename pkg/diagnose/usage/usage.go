// Package usage adds up which jobs use what of a cluster, what is idle, and what of that no pod can use and why. It is pure: the
// view of a snapshot in, values out. What nodes use is what the scheduler charges them; what jobs hold is added up pod by pod.
// The two sums agree.
package usage

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// APIVersion is that of the JSON form, which only ever grows.
const APIVersion = "gangctl.top/v1"

// Amount is how much of a resource is used of how much there is. CPU is in thousandths of a core, memory in bytes.
type Amount struct {
	Used  int64 `json:"used"`
	Total int64 `json:"total"`
}

// Held is the use of nodes by a consumer, as the scheduler charges it: devices by kind, CPU in thousandths of a core, memory in
// bytes, pod slots.
type Held struct {
	Devices map[corev1.ResourceName]int64 `json:"devices"`
	CPU     int64                         `json:"cpuMilli"`
	Memory  int64                         `json:"memoryBytes"`
	Pods    int64                         `json:"pods"`
}

// AllDevices is the number of devices, whatever their kind.
func (h Held) AllDevices() int64 {
	var n int64
	for _, amount := range h.Devices {
		n += amount
	}
	return n
}

// Add adds what another one holds.
func (h *Held) Add(more Held) {
	if h.Devices == nil {
		h.Devices = map[corev1.ResourceName]int64{}
	}
	for kind, n := range more.Devices {
		h.Devices[kind] += n
	}
	h.CPU += more.CPU
	h.Memory += more.Memory
	h.Pods += more.Pods
}

// ledger has the sums from which several reports of one cluster view are made.
type ledger struct {
	w     *view.View
	kinds []corev1.ResourceName
}

func newLedger(w *view.View) *ledger { return &ledger{w: w, kinds: kindsOf(w)} }

// since is the age of a moment in seconds, 0 for one that is not known.
func (l *ledger) since(t time.Time) float64 {
	if t.IsZero() || t.After(l.w.Now) {
		return 0
	}
	return l.w.Now.Sub(t).Seconds()
}
