package iostreams

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestColor(t *testing.T) {
	const plain, red = "x", "\x1b[1;31mx\x1b[0m"
	tests := []struct {
		name     string
		terminal bool
		env      map[string]string
		mode     ColorMode
		want     string
	}{
		{name: "pipe", want: plain},
		{name: "terminal", terminal: true, want: red},
		{name: "terminal, NO_COLOR", terminal: true, env: map[string]string{"NO_COLOR": "1"}, want: plain},
		{name: "terminal, empty NO_COLOR", terminal: true, env: map[string]string{"NO_COLOR": ""}, want: red},
		{name: "terminal, TERM=dumb", terminal: true, env: map[string]string{"TERM": "dumb"}, want: plain},
		{name: "terminal, never", terminal: true, mode: ColorNever, want: plain},
		{name: "pipe, always", mode: ColorAlways, want: red},
		{name: "pipe, always beats NO_COLOR", env: map[string]string{"NO_COLOR": "1"}, mode: ColorAlways, want: red},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _, _, _ := Test(clocktesting.NewFakeClock(time.Time{}))
			if tt.terminal {
				s.SetTerminal(80)
			}
			s.noColor = noColor(func(k string) string { return tt.env[k] })
			s.SetColor(tt.mode)
			if got := s.OutStyled(Red, "x"); got != tt.want {
				t.Errorf("stdout: got %q, want %q", got, tt.want)
			}
			if got := s.ErrStyled(Red, "x"); got != tt.want {
				t.Errorf("stderr: got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWidth(t *testing.T) {
	s, _, _, _ := Test(clocktesting.NewFakeClock(time.Time{}))
	if got := s.Width(); got != 0 {
		t.Errorf("a pipe has no width limit, got %d", got)
	}
	s.SetTerminal(132)
	if got := s.Width(); got != 132 {
		t.Errorf("got %d, want 132", got)
	}
}
