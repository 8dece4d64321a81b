package order

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/koordinator"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// reservationsOf are the Reservations of Koordinator that keep room on nodes for pods to come, as far as a file has them: they are not read of a cluster.
func reservationsOf(c *stage.Context) (all []*unstructured.Unstructured) {
	if c.Gang.Scheduler != koordinator.SchedulerName {
		return nil
	}
	for _, u := range c.View.Snap.Custom[koordinator.ReservationKind()] {
		f := gang.Fields{Object: u}
		if f.String("status", "phase") == "Available" && f.String("status", "nodeName") != "" {
			all = append(all, u)
		}
	}
	return all
}

// reservations adds what Reservations keep on the nodes that the members would get, and returns what is not evaluated then.
func reservations(c *stage.Context, f *stage.Finding) []string {
	nodes := map[string]bool{}
	for _, a := range c.Placement.Placement {
		nodes[a.Node] = true
	}
	var lines []string
	for _, u := range reservationsOf(c) {
		fields := gang.Fields{Object: u}
		at := fields.String("status", "nodeName")
		keeps, given := fields.Resources("status", "allocatable"), fields.Resources("status", "allocated")
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(keeps)) {
			if left := request.Amount(name, keeps[name]) - request.Amount(name, given[name]); left > 0 {
				parts = append(parts, phrase.Amount(name, left))
			}
		}
		if nodes[at] && len(parts) > 0 {
			lines = append(lines, fmt.Sprintf("Reservation %s keeps %s on %s for pods that it names: it shows as free here", u.GetName(), phrase.And(parts), at))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	stage.DetailEach(f, lines, func(line string) string { return line }).Run(getReservations())
	return []string{"the Reservations of Koordinator"}
}

// unreadReservations adds to what Koordinator reports of a shortage that Reservations are not read, unless a file has them.
func unreadReservations(c *stage.Context, f *stage.Finding, report string) {
	if c.Gang.Scheduler == koordinator.SchedulerName && strings.Contains(report, "Insufficient ") && len(reservationsOf(c)) == 0 {
		f.Detail("Reservations of Koordinator hold room that shows as free here: they are not read").Run(getReservations())
	}
}

func getReservations() string {
	return command.Kubectl("", "get", "reservations.scheduling.koordinator.sh")
}
