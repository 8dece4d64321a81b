package phrase

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
)

// Amount is an amount of a resource as users write it: 8 GPUs, 32 cpu, 256Gi memory, 110 pods.
func Amount(name corev1.ResourceName, n int64) string { return withNoun(name, n, Quantity(name, n)) }

// AmountDown is an [Amount], rounded as [Down] does.
func AmountDown(name corev1.ResourceName, n int64) string { return withNoun(name, n, Down(name, n)) }

// AmountUp is an [Amount], rounded as [Up] does.
func AmountUp(name corev1.ResourceName, n int64) string { return withNoun(name, n, Up(name, n)) }

func withNoun(name corev1.ResourceName, n int64, quantity string) string {
	switch {
	case podrequest.IsGPU(name):
		return Count(n, "GPU")
	case name == corev1.ResourcePods:
		return Count(n, "pod slot")
	}
	return quantity + " " + string(name)
}

// Size is what pods request in all, of which readers think first: the devices, or the cpu where there are none; "" without either.
func Size(requests corev1.ResourceList) string {
	name := podrequest.Device(requests)
	if name == "" {
		name = corev1.ResourceCPU
	}
	if n := podrequest.Amount(name, requests[name]); n > 0 {
		return Amount(name, n)
	}
	return ""
}

// Quantity is the bare amount, exactly, as Kubernetes takes it: 32, 1.5, 500m, 256Gi. Counts are written out, as 32000 and not as 32k: people compare them with what they wrote.
func Quantity(name corev1.ResourceName, n int64) string {
	q := podrequest.Quantity(name, n)
	switch {
	case q.Format != resource.DecimalSI:
		return q.String()
	case name != corev1.ResourceCPU || n%core == 0:
		return strconv.FormatInt(q.Value(), 10)
	case n > core:
		return decimal(n, core, 3, false)
	}
	return q.String()
}

// Down is what there is of a resource, such as what is free, as a sentence has it: in three digits or whole Gi, as 255Gi and 18.8, and never more than there is.
func Down(name corev1.ResourceName, n int64) string { return rounded(name, n, false) }

// Up is what is requested or used of a resource, as [Down] has what there is, and never less than it is: what does not fit does not look as if it did.
func Up(name corev1.ResourceName, n int64) string { return rounded(name, n, true) }

const (
	core   = 1000 // amounts of cpu are in thousandths
	mi, gi = 1 << 20, 1 << 30
)

// rounded is an amount in cores or in Gi, or, where that is less than one, in thousandths or Mi.
func rounded(name corev1.ResourceName, n int64, up bool) string {
	switch {
	case name == corev1.ResourceCPU && n > core:
		return decimal(n, core, max(1, behind(n/core)), up)
	case podrequest.Unit(name) == 1 || n < mi || n%gi == 0:
		return Quantity(name, n)
	case n < gi-mi:
		return decimal(n, mi, 0, up) + "Mi"
	}
	return decimal(n, gi, behind(n/gi), up) + "Gi"
}

// behind is how many digits a number has behind the point, so that there are three.
func behind(whole int64) int {
	switch {
	case whole < 10:
		return 2
	case whole < 100:
		return 1
	}
	return 0
}

// decimal is an amount in a unit, with up to so many digits behind the point. It is rounded down, or up.
func decimal(n, unit int64, digits int, up bool) string {
	parts := int64(1)
	for range digits {
		parts *= 10
	}
	whole, part := n/unit, n%unit*parts
	if up {
		part += unit - 1
	}
	if part /= unit; part == parts {
		whole, part = whole+1, 0
	}
	text := strconv.FormatInt(whole, 10)
	if part == 0 {
		return text
	}
	return strings.TrimRight(fmt.Sprintf("%s.%0*d", text, digits, part), "0")
}

// Resource is the name by which people call a resource.
func Resource(name corev1.ResourceName) string {
	switch {
	case podrequest.IsGPU(name):
		return "GPUs"
	case name == corev1.ResourcePods:
		return "pod slots"
	}
	return string(name)
}

// IsShort is the end of a sentence that begins with a [Resource]: cpu is short, GPUs are short.
func IsShort(name corev1.ResourceName) string {
	switch {
	case name == corev1.ResourcePods:
		return "are used up"
	case podrequest.IsGPU(name):
		return "are short"
	}
	return "is short"
}
