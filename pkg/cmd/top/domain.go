package top

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
	clusterview "github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

// validateBy refuses a label that no node can have.
func (o *Options) validateBy(typed bool) error {
	if !typed {
		return nil
	}
	if problems := content.IsLabelKey(o.By); len(problems) > 0 {
		return failure.Usagef("--by %q: %s", phrase.Shorten(o.By, 80), strings.Join(problems, "; ")).WithHint("for example: gangctl top node --by topology.kubernetes.io/zone")
	}
	return nil
}

// unlabelled is the error for a label that no node has; nil if there is one, or no node at all.
func unlabelled(w *clusterview.View, key string) error {
	keys := map[string]bool{}
	for _, n := range w.Cluster().Nodes() {
		for k := range n.Labels {
			keys[k] = true
		}
	}
	if keys[key] || len(w.Cluster().Nodes()) == 0 {
		return nil
	}
	f := failure.Errorf("no node has the label %s", key)
	if nearest := suggest.Nearest(key, slices.Sorted(maps.Keys(keys))); nearest != "" {
		return f.WithHint("did you mean --by %s?", nearest)
	}
	return f.WithHint("see what labels nodes have with `kubectl get nodes --show-labels`")
}

// domainFrame shows the domains of a label, and what is in none.
func domainFrame(r usage.Domains, l layout) []string {
	columns := []printer.Column{{Name: "DOMAIN"}, {Name: "NODES"}, {Name: "READY"}, {Name: "GPU"}, {Name: "FREE"}, {Name: "LARGEST GANG"}}
	rows := make([][]string, 0, len(r.Domains))
	for _, d := range r.Domains {
		total := func(text func(usage.Total) string) func(corev1.ResourceName) string {
			return func(kind corev1.ResourceName) string {
				i := slices.IndexFunc(d.Totals, func(t usage.Total) bool { return t.Kind == kind && t.Total > 0 })
				if i < 0 {
					return ""
				}
				return text(d.Totals[i])
			}
		}
		several := len(r.Kinds) > 1
		rows = append(rows, []string{
			d.Name, strconv.Itoa(d.Nodes), strconv.Itoa(d.Ready),
			labelled(r.Kinds, several, total(func(t usage.Total) string { return fmt.Sprintf("%d/%d", t.Used, t.Total) })),
			labelled(r.Kinds, several, total(func(t usage.Total) string { return strconv.FormatInt(t.Free, 10) })),
			labelled(r.Kinds, several, total(gangs)),
		})
	}
	lines := printer.Grid(columns, rows, l.width, l.headers)
	if l.headers && r.Outside > 0 {
		text := fmt.Sprintf("%s without the label %s: %s in no domain", phrase.Count(r.Outside, "node"), r.Key, phrase.Verb(r.Outside, "it is", "they are"))
		lines = append(append(lines, ""), fold(text, l.width)...)
	}
	return lines
}

// gangs reads like 16×1, 8×2, 2×8: the largest gangs that start in a domain now, by the devices of a member.
func gangs(t usage.Total) string {
	var sizes []string
	for _, g := range t.Largest {
		if g.Members > 0 {
			sizes = append(sizes, fmt.Sprintf("%d×%d", g.Members, g.Devices))
		}
	}
	if len(sizes) == 0 {
		return "0"
	}
	return strings.Join(sizes, " ")
}
