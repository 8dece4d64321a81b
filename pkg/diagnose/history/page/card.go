package page

import (
	"fmt"
	"strings"

	"github.com/gangctl/gangctl/pkg/diagnose/history"
)

// maxCells is how many accelerators of one kind on one node are drawn one by one.
const maxCells = 64

// card is a node with a cell for each accelerator.
type card struct {
	Name   string
	State  string
	Kinds  []kind
	Others []string
	// Names are the members, where no accelerator shows them.
	Names []string
	Own   bool
}

// kind are the accelerators of one kind on a node.
type kind struct {
	Name  string
	Count string
	Cells []cell
}

// cell is one accelerator.
type cell struct{ Class, Label, Text string }

func cards(r *history.Report) []card {
	all := make([]card, 0, len(r.Nodes))
	for _, n := range r.Nodes {
		c := card{Name: n.Name, State: state(n), Own: len(n.Members) > 0}
		shown := map[string]bool{}
		for _, d := range n.Devices {
			k := kind{Name: string(d.Kind), Count: fmt.Sprintf("%d free of %d", d.Free, d.Total)}
			for _, h := range d.Consumers {
				if h.Member != "" {
					shown[h.Member] = true
					k.add(h.Amount, cell{"own", short(h.Member), h.Member})
					continue
				}
				k.add(h.Amount, cell{"other", "", h.Other})
				c.Others = append(c.Others, fmt.Sprintf("%s: %d", h.Other, h.Amount))
			}
			k.add(d.Unhealthy, cell{"sick", "✕", "unhealthy"})
			k.add(d.Idle, cell{"idle", "/", "idle, but not usable: " + d.Why})
			k.add(d.Free, cell{"free", "", "free"})
			if len(k.Cells) > maxCells {
				k.Cells = nil // the numbers show it
			}
			c.Kinds = append(c.Kinds, k)
		}
		for _, m := range n.Members {
			if !shown[m] {
				c.Names = append(c.Names, m)
			}
		}
		all = append(all, c)
	}
	return all
}

func (k *kind) add(n int64, c cell) {
	for range min(n, maxCells+1) {
		k.Cells = append(k.Cells, c)
	}
}

// state is what keeps pods from a node, as text; empty for one that is ready.
func state(n history.Node) string {
	var parts []string
	for _, s := range n.States {
		if s != "Ready" {
			parts = append(parts, s)
		}
	}
	if n.States == nil {
		parts = append(parts, "not seen")
	}
	for _, t := range n.Taints {
		parts = append(parts, "taint "+t)
	}
	return strings.Join(parts, ", ")
}

// short is a member in three letters: w12 for worker-12.
func short(member string) string {
	role, index, _ := strings.Cut(member, "-")
	if role == "" {
		return member
	}
	return role[:1] + index
}
