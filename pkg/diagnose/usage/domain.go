package usage

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
)

// Domains are the nodes by the value that they have of a label.
type Domains struct {
	APIVersion string    `json:"apiVersion"`
	At         time.Time `json:"at"`
	// Key is the label.
	Key     string   `json:"key"`
	Domains []Domain `json:"domains"`
	// Outside is how many nodes do not have the label: they are in no domain.
	Outside int `json:"outside"`
	// Kinds are the kinds of devices, GPUs first.
	Kinds []corev1.ResourceName `json:"kinds"`
	// Uncounted is how many ResourceClaims have devices allocated, which are in no number here.
	Uncounted int `json:"claimsNotCounted,omitempty"`
}

// Domain is the nodes with one value of the label.
type Domain struct {
	Name string `json:"name"`
	// Nodes is how many nodes it has, Ready how many of them are Ready and not cordoned.
	Nodes int `json:"nodes"`
	Ready int `json:"ready"`
	// Totals are by kind of device; their Largest are the largest gangs that start within the domain now.
	Totals []Total `json:"totals"`
}

// OfDomains reports on the domains of a label, ordered by name.
func OfDomains(w *view.View, key string) Domains {
	l := newLedger(w)
	report, fits := l.report()
	out := Domains{APIVersion: APIVersion, At: w.Now, Key: key, Domains: []Domain{}, Kinds: slices.Clip(l.kinds), Uncounted: report.Uncounted}
	members := map[string][]Node{}
	for _, n := range report.Nodes {
		if value, ok := w.Cluster().Node(n.Name).Labels[key]; ok {
			members[value] = append(members[value], n)
		} else {
			out.Outside++
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(members), strings.Compare) {
		d := Domain{Name: name, Nodes: len(members[name]), Totals: []Total{}}
		within := map[string]bool{}
		for _, n := range members[name] {
			within[n.Name] = true
			if slices.Equal(n.States, []string{StateReady}) {
				d.Ready++
			}
		}
		for i, kind := range l.kinds {
			t := sum(kind, members[name])
			t.Usual, t.Largest = report.Totals[i].Usual, fits[kind].within(func(node string) bool { return within[node] })
			d.Totals = append(d.Totals, t)
		}
		out.Domains = append(out.Domains, d)
	}
	return out
}
