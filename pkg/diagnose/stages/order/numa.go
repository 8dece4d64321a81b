package order

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// aligned is how schedulers report that what a pod requests is not free together on a node, as its kubelet would require.
var aligned = regexp.MustCompile(`cannot align|(?i:numa topology)`)

// unaligned adds what a file has of the NUMA nodes of the nodes that members would get, if the scheduler refuses them for that, and returns what is not evaluated then: of a cluster that is not
// read.
func unaligned(c *stage.Context, f *stage.Finding, report string) []string {
	if !aligned.MatchString(report) {
		return nil
	}
	seen := map[string]bool{}
	var lines []string
	for _, a := range c.Placement.Placement {
		u := c.View.Object(schema.GroupKind{Group: "topology.node.k8s.io", Kind: "NodeResourceTopology"}, "", a.Node)
		if u == nil || seen[a.Node] {
			continue
		}
		seen[a.Node] = true
		for _, r := range c.Request.Roles {
			if r.Name == a.Role {
				lines = append(lines, divided(u, r.Pod)...)
			}
		}
	}
	stage.DetailEach(f, lines, func(line string) string { return line })
	return []string{"how what is free on a node is divided among its NUMA nodes"}
}

// divided are the resources of which no NUMA node of a node has as much as a pod requests, a line each: n1 (single-numa-node): no NUMA node has 8 GPUs: 4, 4.
func divided(u *unstructured.Unstructured, pod *corev1.Pod) (lines []string) {
	fields := gang.Fields{Object: u}
	free := map[corev1.ResourceName][]int64{}
	for _, zone := range fields.List("zones") {
		resources, _ := zone["resources"].([]any)
		for _, one := range resources {
			has, _ := one.(map[string]any)
			name, _ := has["name"].(string)
			if q, err := resource.ParseQuantity(fmt.Sprint(has["available"])); err == nil && zone["type"] == "Node" {
				free[corev1.ResourceName(name)] = append(free[corev1.ResourceName(name)], request.Amount(corev1.ResourceName(name), q))
			}
		}
	}
	requests := request.Of(pod)
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		amount := request.Amount(name, requests[name])
		if len(free[name]) == 0 || slices.Max(free[name]) >= amount {
			continue
		}
		var parts []string
		for _, n := range free[name] {
			parts = append(parts, phrase.Quantity(name, n))
		}
		lines = append(lines, fmt.Sprintf("%s (%s): no NUMA node of it has %s free: %s", u.GetName(), cmp.Or(policyOf(u), "topology manager"), phrase.Amount(name, amount), phrase.Names(parts)))
	}
	return lines
}

// policyOf is the policy of the topology manager of a node: that of an attribute, or of older releases the one that their list has.
func policyOf(u *unstructured.Unstructured) string {
	fields := gang.Fields{Object: u}
	for _, attribute := range fields.List("attributes") {
		if value, _ := attribute["value"].(string); attribute["name"] == "topologyManagerPolicy" {
			return value
		}
	}
	return strings.Join(fields.Strings("topologyPolicies"), ", ")
}
