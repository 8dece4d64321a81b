package phrase

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	podrequest "github.com/gangctl/gangctl/pkg/gang/request"
)

func TestQuantities(t *testing.T) {
	const cpu, memory, pages, gpu = corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceName("hugepages-2Mi"), corev1.ResourceName("nvidia.com/gpu")
	tests := []struct {
		name            corev1.ResourceName
		n               int64
		exact, down, up string
	}{
		{memory, 256 << 30, "256Gi", "256Gi", "256Gi"},
		{memory, 1 << 40, "1Ti", "1Ti", "1Ti"},
		{memory, 257820 << 20, "257820Mi", "251Gi", "252Gi"},
		{memory, 2047722 << 20, "2047722Mi", "1999Gi", "2000Gi"},
		{memory, 2048000<<20 - 1, "2147483647999", "1999Gi", "2000Gi"},
		{memory, 12000 << 20, "12000Mi", "11.7Gi", "11.8Gi"},
		{memory, 1500 << 20, "1500Mi", "1.46Gi", "1.47Gi"},
		{memory, 1536 << 20, "1536Mi", "1.5Gi", "1.5Gi"},
		{memory, 1025 << 20, "1025Mi", "1Gi", "1.01Gi"},
		{memory, 1<<30 - 1, "1073741823", "0.99Gi", "1Gi"},
		{memory, 278 << 20, "278Mi", "278Mi", "278Mi"},
		{memory, 278<<20 + 1, "291504129", "278Mi", "279Mi"},
		{memory, 1000, "1k", "1k", "1k"},
		{memory, 0, "0", "0", "0"},
		{pages, 3 << 29, "1536Mi", "1.5Gi", "1.5Gi"},
		{cpu, 500, "500m", "500m", "500m"},
		{cpu, 18800, "18.8", "18.8", "18.8"},
		{cpu, 63850, "63.85", "63.8", "63.9"},
		{cpu, 191400, "191.4", "191.4", "191.4"},
		{cpu, 191999, "191.999", "191.9", "192"},
		{cpu, 1250, "1.25", "1.25", "1.25"},
		{cpu, 1005, "1.005", "1", "1.01"},
		{cpu, 64000, "64", "64", "64"},
		{cpu, -1500, "-1500m", "-1500m", "-1500m"},
		{gpu, 32000, "32000", "32000", "32000"},
	}
	for _, tt := range tests {
		if exact, down, up := Quantity(tt.name, tt.n), Down(tt.name, tt.n), Up(tt.name, tt.n); exact != tt.exact || down != tt.down || up != tt.up {
			t.Errorf("%d of %s: got %s, rounded down %s, up %s, want %s, %s, %s", tt.n, tt.name, exact, down, up, tt.exact, tt.down, tt.up)
		}
		if q, err := resource.ParseQuantity(Quantity(tt.name, tt.n)); err != nil || podrequest.Amount(tt.name, q) != tt.n {
			t.Errorf("%d of %s is written as %s, which is not as much", tt.n, tt.name, Quantity(tt.name, tt.n))
		}
	}
}
