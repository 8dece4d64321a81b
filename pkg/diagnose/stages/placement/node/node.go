// Package node is what nodes are like that members may use, or could: whether one is new, closed or unfit, what it offers, and in which group it was made.
package node

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// joiningTakes is how long after its creation a node is still taken to be coming up.
const joiningTakes = 10 * time.Minute

// IsNew reports whether a node is so new that it may still be coming up, and stays.
func IsNew(c *stage.Context, n *corev1.Node) bool {
	return !n.CreationTimestamp.IsZero() && c.View.Age(n.CreationTimestamp.Time) <= joiningTakes && n.DeletionTimestamp == nil && !slices.ContainsFunc(n.Spec.Taints, placement.RemovalTaint)
}

// Usable are the nodes of a cluster that some role may use: with the device that the role requests, if it requests one.
func Usable(c *stage.Context, cluster *placement.Cluster) []string {
	var all []string
	for _, role := range c.Request.Roles {
		device := request.Device(request.Of(role.Pod))
		for _, name := range c.MatrixOn(cluster, role).Usable() {
			if device == "" || Offers(cluster.Node(name), device) {
				all = append(all, name)
			}
		}
	}
	return all
}

// Names are the names of some nodes.
func Names(nodes []*corev1.Node) []string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Name)
	}
	return all
}

// Offers reports whether a node has a device to give.
func Offers(n *corev1.Node, name corev1.ResourceName) bool {
	q := n.Status.Allocatable[name]
	return !q.IsZero()
}

// Offered is how much of a device some nodes have in all.
func Offered(cluster *placement.Cluster, nodes []string, device corev1.ResourceName) (sum int64) {
	for _, name := range nodes {
		if device != "" {
			sum = request.Sum(sum, request.Amount(device, cluster.Node(name).Status.Allocatable[device]))
		}
	}
	return sum
}
