package stages

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kai"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement"
)

// ceiling is the limit of one resource in a queue.
type ceiling struct {
	name  corev1.ResourceName
	limit int64 // in the unit of fit.Quantity
	path  []string
	// raw is an amount as the field writes it.
	raw func(int64) any
	// firm is true for a limit that only gangs feel that cannot be preempted.
	firm bool
}

// kaiAmounts are the resources in a queue of KAI: what they are called there, and how much one unit of the field is.
var kaiAmounts = []struct {
	field string
	name  corev1.ResourceName
	unit  int64
}{{"gpu", "nvidia.com/gpu", 1}, {"cpu", corev1.ResourceCPU, 1}, {"memory", corev1.ResourceMemory, 1e6}} // thousandths of a core, megabytes

// ceilings are the hard limits of a queue, device first.
func ceilings(kind schema.GroupKind, q *unstructured.Unstructured) []ceiling {
	f := gang.Fields{Object: q}
	var all []ceiling
	if kind == kai.QueueKind() {
		for _, r := range kaiAmounts {
			for _, field := range []string{"limit", "quota"} {
				// -1, or nothing, is no limit.
				if n := resourceNumber(f.Map("spec", "resources", r.field)[field]); n >= 0 {
					all = append(all, ceiling{name: r.name, limit: n * r.unit, path: []string{"spec", "resources", r.field, field}, firm: field == "quota",
						raw: func(amount int64) any { return (amount + r.unit - 1) / r.unit }})
				}
			}
		}
		return all
	}
	list := f.Resources("spec", "capability")
	for _, name := range slices.SortedFunc(maps.Keys(list), devicesFirst) {
		all = append(all, ceiling{name: name, limit: placement.Amount(name, list[name]), path: []string{"spec", "capability", string(name)},
			raw: func(amount int64) any { return phrase.Quantity(name, amount) }})
	}
	return all
}

// devicesFirst orders resources: what people ask about comes first.
func devicesFirst(a, b corev1.ResourceName) int {
	if request.IsGPU(a) != request.IsGPU(b) {
		if request.IsGPU(a) {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b)
}

func resourceNumber(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return -1
}

func parentQueue(q *unstructured.Unstructured) string {
	f := gang.Fields{Object: q}
	if parent := f.String("spec", "parent"); parent != "" {
		return parent
	}
	return f.String("spec", "parentQueue")
}

// preemptible reports whether KAI may push a gang aside: what its object says, else by its priority.
func (c *climb) preemptible(d gang.Declaration) bool {
	if u := c.object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name); u != nil {
		f := gang.Fields{Object: u}
		if text := f.String("spec", "preemptibility"); text != "" {
			return text == "preemptible"
		}
	}
	return c.classValue(d.PriorityClass) < 100
}
