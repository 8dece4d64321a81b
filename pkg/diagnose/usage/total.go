package usage

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// Nodes are all nodes, and what they have together.
type Nodes struct {
	APIVersion string    `json:"apiVersion"`
	At         time.Time `json:"at"`
	Nodes      []Node    `json:"nodes"`
	// Totals are by kind of device, GPUs first.
	Totals []Total `json:"totals"`
	// Uncounted is how many ResourceClaims have devices allocated, which are in no number here.
	Uncounted int `json:"claimsNotCounted,omitempty"`
}

// Total is the devices of one kind in the cluster.
type Total struct {
	Kind  corev1.ResourceName `json:"kind"`
	Used  int64               `json:"used"`
	Total int64               `json:"total"`
	Idle  int64               `json:"idle"`
	Free  int64               `json:"free"`
	// Leaving are those of Used that pods hold which are being deleted.
	Leaving int64 `json:"leaving,omitempty"`
	// Unusable is why idle devices are not free, the commonest reason first.
	Unusable []Unusable `json:"unusable"`
	// Usual is what comes with one device; Free, Unusable and Largest reckon with it.
	Usual Usual `json:"usualPerDevice"`
	// Largest are the largest gangs that start now.
	Largest []Largest `json:"largest"`
}

// OfNodes reports on the nodes of a cluster view.
func OfNodes(w *view.View) Nodes {
	report, _ := newLedger(w).report()
	return report
}

// report is that on all nodes, and how many members of each size fit on which of them, by kind of device.
func (l *ledger) report() (Nodes, map[corev1.ResourceName]fit) {
	w := l.w
	fits := map[corev1.ResourceName]fit{}
	usual, free := map[corev1.ResourceName]Usual{}, map[corev1.ResourceName]map[string]room{}
	for _, kind := range l.kinds {
		usual[kind] = l.usual(kind)
		free[kind] = l.rooms(kind, usual[kind])
	}
	report := Nodes{APIVersion: APIVersion, At: w.Now, Nodes: l.nodes(free), Totals: []Total{}, Uncounted: Uncounted(w.Snap)}
	for _, kind := range l.kinds {
		t := sum(kind, report.Nodes)
		fits[kind] = l.fit(kind, usual[kind])
		t.Usual, t.Largest = usual[kind], fits[kind].within(func(string) bool { return true })
		report.Totals = append(report.Totals, t)
	}
	return report, fits
}

func sum(kind corev1.ResourceName, nodes []Node) Total {
	t := Total{Kind: kind, Unusable: []Unusable{}}
	for _, n := range nodes {
		for _, d := range n.Devices {
			if d.Kind != kind {
				continue
			}
			t.Used, t.Total, t.Idle, t.Free = t.Used+d.Used, t.Total+d.Total, t.Idle+d.Idle, t.Free+d.Free
			t.Leaving += d.Leaving
			for _, u := range d.Unusable {
				i := slices.IndexFunc(t.Unusable, func(x Unusable) bool { return x.Reason == u.Reason })
				if i < 0 {
					t.Unusable = append(t.Unusable, u)
				} else {
					t.Unusable[i].Amount += u.Amount
				}
			}
		}
	}
	slices.SortFunc(t.Unusable, byAmount)
	return t
}
