package device

import "testing"

func TestVendor(t *testing.T) {
	if got := vendor("nvidia.com/gpu"); got != "nvidia.com" {
		t.Errorf("got %q", got)
	}
}
