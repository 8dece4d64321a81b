package demo

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/sandbox/members"
)

func member(job, role string, index int, state members.State, gpus int64) members.Member {
	return members.Member{Job: job, Role: role, Index: index, Pod: job + "-" + role + "-0", State: state, GPUs: gpus}
}

func TestIdle(t *testing.T) {
	tests := []struct {
		name string
		seen members.List
		want int64
	}{
		{"nothing", nil, 0},
		{"a whole job", members.List{member("a", "worker", 0, members.Running, 2), member("a", "worker", 1, members.Running, 2)}, 0},
		{"half a job", members.List{member("a", "worker", 0, members.Running, 2), member("a", "worker", 1, members.Pending, 2)}, 2},
		{"a waiting job", members.List{member("a", "worker", 0, members.Pending, 2), member("a", "worker", 1, members.Pending, 2)}, 0},
		{"half of each of two", members.List{
			member("a", "worker", 0, members.Running, 2), member("a", "worker", 1, members.Pending, 2),
			member("b", "worker", 0, members.Starting, 3), member("b", "worker", 1, members.Pending, 3),
		}, 5},
		{"the rest of a job that ends", members.List{member("a", "ps", 0, members.Running, 1), member("a", "worker", 0, members.Ended, 2)}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Idle(tt.seen); got != tt.want {
				t.Errorf("%d GPUs idle, want %d", got, tt.want)
			}
		})
	}
}

func TestPrint(t *testing.T) {
	half := members.List{member("a", "ps", 0, members.Running, 0), member("a", "worker", 0, members.Pending, 4)}
	half[0].GPUs = 2
	none := members.List{member("a", "ps", 0, members.Pending, 2), member("a", "worker", 0, members.Pending, 4)}
	tables := []table{{}}
	tables[0].add("default scheduler", []members.List{half})
	tables[0].add("gang scheduler", []members.List{none})
	out := &bytes.Buffer{}
	if err := tables[0].print(out, Act{Title: "One job", Moments: []string{"too few GPUs"}}); err != nil {
		t.Fatal(err)
	}
	printCost(out, 3, tables)
	const want = `
One job

too few GPUs
┌───────────────────────┬───────────────────┬────────────────┐
│ pod                   │ default scheduler │ gang scheduler │
├───────────────────────┼───────────────────┼────────────────┤
│ a-ps-0                │ running           │ pending        │
│ a-worker-0            │ pending           │ pending        │
├───────────────────────┼───────────────────┼────────────────┤
│ GPUs held for nothing │ 2                 │ 0              │
└───────────────────────┴───────────────────┴────────────────┘

An idle GPU-minute costs $0.050 at $3.00 a GPU-hour (--gpu-hour-price).
While GPUs were short, every minute of the two examples cost:
  default scheduler  2 idle GPU-minutes, $0.10
  gang scheduler     0 idle GPU-minutes, $0.00
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestLastLines(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a\n": "a", "a\nb\nc\nd\n": "b; c; d",
	} {
		if got := lastLines(text, 3); got != want {
			t.Errorf("lastLines(%q) = %q, want %q", text, got, want)
		}
	}
}
