package supervise

import (
	"slices"
	"testing"
)

func TestDegradeIfEnded(t *testing.T) {
	lost := []Component{{Name: "etcd", PID: 2}, {Name: "nodes", PID: 3, Exit: "signal: killed"}}
	tests := []struct {
		name       string
		phase      Phase
		components []Component
		want       Phase
	}{
		{"all run", Ready, lost[:1], Ready},
		{"one ended", Ready, lost, Degraded},
		{"one ended while starting", Starting, lost, Starting},
		{"one ended as it should", Stopping, lost, Stopping},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &State{Phase: tt.phase, Components: tt.components}
			if s.degradeIfEnded(); s.Phase != tt.want {
				t.Errorf("got %s, want %s", s.Phase, tt.want)
			}
		})
	}
	if got := (&State{Components: lost}).Ended(); !slices.Equal(got, []string{"nodes"}) {
		t.Errorf("ended: %v", got)
	}
}
