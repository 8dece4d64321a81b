package autoscaler

import "testing"

func TestIsComing(t *testing.T) {
	for nodes, want := range map[int]string{1: "1 node is", 2: "2 nodes are"} {
		if got := isComing(nodes); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
