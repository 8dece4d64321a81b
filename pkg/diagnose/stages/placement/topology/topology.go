// Package topology finds which rules about where members are keep them from room that there is: together in one domain of the nodes, spread over several, near some pods or
// away from others.
package topology

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	"github.com/gangctl/gangctl/pkg/gang/networktopology"
	"github.com/gangctl/gangctl/pkg/placement"
)

// topologyKeys are the labels that a node must have for the role's rules about places to be met there.
func topologyKeys(c *stage.Context, role placement.Role) []string {
	var keys []string
	if c.Request.Topology.Required != "" {
		keys = append(keys, c.Request.Topology.Required)
	}
	keys = append(keys, c.Request.Topology.PartKeys(role.Pod)...)
	if hasAffinity(role.Pod) {
		for _, term := range role.Pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			keys = append(keys, term.TopologyKey)
		}
	}
	for _, s := range role.Pod.Spec.TopologySpreadConstraints {
		if s.WhenUnsatisfiable == corev1.DoNotSchedule {
			keys = append(keys, s.TopologyKey)
		}
	}
	return keys
}

// Labels checks that some node has the labels by which members are to share a place, or to be spread over places.
func Labels(c *stage.Context, out *stage.Result, role placement.Role) {
	labels := labelsOfNodes(c.View)
	for _, key := range topologyKeys(c, role) {
		if labels[key] || len(c.Cluster().Nodes()) == 0 {
			continue
		}
		if resource, ok := networktopology.Resource(key); ok && out.Denied(c, resource.String(), "") {
			continue
		}
		f := noDomain(c, key, role).Fact("role", phrase.Role(role.Name)).Fact("key", key)
		nearest := suggest.Nearest(key, slices.Sorted(maps.Keys(labels)))
		if ofGang := key == c.Request.Topology.Required && c.Gang.Decl != nil; ofGang && !patch.CanRequire(c.Gang.Decl, nearest) {
			nearest = ""
		}
		if nearest != "" {
			f.Detail("did you mean the label %s?", nearest)
		}
		switch {
		case c.Gang.Decl == nil && slices.Contains(view.Topology(c.Gang).AllRequired(), key):
			f.Detail("the annotation %s of its pods requires it", kueue.RequiredTopology)
		case !ofPart(c, role, key):
			if nearest != "" {
				f.Fix(otherTopology(c, role, key, nearest))
			}
			f.Fix(otherTopology(c, role, key, ""))
		}
		out.Add(f)
		return
	}
}

// ofPart reports whether it is a rule for a part of the gang that needs a label. Whoever wrote it has to change it, as such rules are in as many places as there
// are dialects.
func ofPart(c *stage.Context, role placement.Role, key string) bool {
	return key != c.Request.Topology.Required && slices.Contains(c.Request.Topology.PartKeys(role.Pod), key)
}

// noDomain finds that no node has a label, or is in a domain of the network; of the objects that describe that some may be unreadable.
func noDomain(c *stage.Context, key string, role placement.Role) *stage.Finding {
	title := networktopology.Title(key)
	if title == "" {
		return stage.Found(answer.SelectorNoMatch, "no node has the label %s, for the topology of %s", key, phrase.Role(role.Name))
	}
	f := stage.Found(answer.SelectorNoMatch, "no node is in a %s, for the topology of %s", title, phrase.Role(role.Name))
	stage.DetailEach(f, c.View.Domains().Problems(), error.Error)
	if resource, derived := networktopology.Resource(key); derived && resource.Resource == "hypernodes" {
		missingMembers(c, f, resource.String())
	}
	return f
}

// missingMembers adds that HyperNodes have members which are no nodes, which is for those to correct who describe the network.
func missingMembers(c *stage.Context, f *stage.Finding, resource string) {
	missing := c.View.Domains().Missing(func(node string) bool { return c.Cluster().Node(node) != nil })
	lines := make([]string, 0, len(missing))
	for _, m := range missing {
		lines = append(lines, fmt.Sprintf("HyperNode %s names %s, which %s not exist", m.HyperNode, phrase.Names(m.Nodes), phrase.Verb(len(m.Nodes), "does", "do")))
	}
	switch len(lines) {
	case 0:
		return
	case 1:
		f.Message += ": " + lines[0]
	default:
		stage.DetailEach(f, lines, func(line string) string { return line })
	}
	f.As(answer.Blocked, answer.Admin).Run(command.Kubectl("", "get", resource, missing[0].HyperNode, "-o", "yaml"))
}

// Unreadable finds that the pods state a domain in a way that is not understood: a scheduler must not ignore that.
func Unreadable(c *stage.Context) *stage.Finding {
	return stage.Found(answer.SelectorNoMatch, "it is placed nowhere, as it cannot be read where its members must be together: %s", c.Gang.TopologyProblem).
		Fact("problem", c.Gang.TopologyProblem.Error()).Fix(patch.NoTopology(c.Gang))
}

// labelsOfNodes are the keys of the labels that some node has.
func labelsOfNodes(v *view.View) map[string]bool {
	return view.Once(v, "labels of nodes", func() map[string]bool {
		labels := map[string]bool{}
		for _, n := range v.Cluster().Nodes() {
			for key := range n.Labels {
				labels[key] = true
			}
		}
		return labels
	})
}

// otherTopology names another label for the topology, or no longer if there is none.
func otherTopology(c *stage.Context, role placement.Role, key, to string) stage.Fix {
	name, change := phrase.Role(role.Name), map[string]any{}
	text := fmt.Sprintf("write %s for %s", to, key)
	if to == "" {
		text = "do without the rule about " + key
	}
	if c.Request.Topology.Required == key {
		return patch.GroupTopology(c.Gang, to)
	}
	spec := role.Pod.Spec.DeepCopy()
	if a := spec.Affinity; a != nil && a.PodAffinity != nil {
		if terms := retopologized(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, key, to); !equality.Semantic.DeepEqual(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) {
			change[name+".podAffinity"] = to
		}
	}
	if slices.ContainsFunc(spec.TopologySpreadConstraints, func(s corev1.TopologySpreadConstraint) bool { return s.TopologyKey == key }) {
		change[name+".topologySpread"] = to
	}
	return patch.Job(c.Gang, answer.Relax, text, change, patch.InRole(name, func(spec *corev1.PodSpec) {
		if a := spec.Affinity; a != nil && a.PodAffinity != nil {
			a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = retopologized(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, key, to)
		}
		var kept []corev1.TopologySpreadConstraint
		for _, s := range spec.TopologySpreadConstraints {
			if s.TopologyKey == key {
				if s.TopologyKey = to; to == "" {
					continue
				}
			}
			kept = append(kept, s)
		}
		spec.TopologySpreadConstraints = kept
	}))
}

// retopologized writes another topology key into terms, or leaves those with the key out.
func retopologized(terms []corev1.PodAffinityTerm, key, to string) []corev1.PodAffinityTerm {
	var kept []corev1.PodAffinityTerm
	for _, term := range terms {
		if term.TopologyKey == key {
			if term.TopologyKey = to; to == "" {
				continue
			}
		}
		kept = append(kept, term)
	}
	return kept
}

func hasAffinity(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	return a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}
