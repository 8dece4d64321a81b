package answer

import (
	"slices"
	"testing"
)

// The exit codes are part of the interface: this table is the one in the reference.
func TestExitCode(t *testing.T) {
	tests := []struct {
		verdict Verdict
		who     Who
		never   bool
		want    int
	}{
		{Running, Nobody, false, 0},
		{Done, Nobody, false, 0},
		{FitsNow, Nobody, false, 3},
		{Waiting, Nobody, false, 3},
		{Waiting, Admin, false, 3},
		{Starting, Nobody, false, 3},
		{Blocked, User, false, 4},
		{Blocked, Admin, false, 5},
		{Blocked, Nobody, false, 5},
		{Blocked, User, true, 6},
		{Blocked, Admin, true, 6},
		{Degraded, User, false, 7},
		{Uncertain, Admin, false, 8},
		{"", "", false, 8},
		{Failed, User, false, 9},
	}
	for _, tt := range tests {
		if got := ExitCode(tt.verdict, tt.who, tt.never); got != tt.want {
			t.Errorf("%s, %s, never %v: got %d, want %d", tt.verdict, tt.who, tt.never, got, tt.want)
		}
	}
}

// What starts is what needs no action and waits for nothing else.
func TestStarts(t *testing.T) {
	starts := []Verdict{Running, FitsNow, Starting, Done}
	for _, v := range []Verdict{Running, Done, FitsNow, Waiting, Starting, Blocked, Degraded, Uncertain, Failed, ""} {
		if v.Starts() != slices.Contains(starts, v) {
			t.Errorf("%s starts: %v", v, v.Starts())
		}
	}
}
