package argv

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestValues(t *testing.T) {
	tests := []struct {
		name, command, args string
		values, list        string
		last                string
		given               bool
	}{
		{name: "not given", command: "/x --other=a scheme"},
		{name: "joined", args: "--scheme=a", values: "a", list: "a", last: "a", given: true},
		{name: "two arguments", command: "/x --scheme a", values: "a", list: "a", last: "a", given: true},
		{name: "one dash", args: "-scheme=a", values: "a", list: "a", last: "a", given: true},
		{name: "several, in command and arguments", command: "/x --scheme=a", args: "--scheme b,c", values: "a b,c", list: "a b c", last: "b,c", given: true},
		{name: "only named", args: "--scheme --other", values: "", given: true},
		{name: "named at the end", args: "--scheme", values: "", given: true},
		{name: "a longer name", args: "--scheme-name=a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := corev1.Container{Command: strings.Fields(tt.command), Args: strings.Fields(tt.args)}
			if got := strings.Join(Values(c, "scheme"), " "); got != tt.values {
				t.Errorf("values: %q", got)
			}
			if got := strings.Join(List(c, "scheme"), " "); got != tt.list {
				t.Errorf("list: %q", got)
			}
			if last, given := Last(c, "scheme"); last != tt.last || given != tt.given {
				t.Errorf("last: %q, %v", last, given)
			}
		})
	}
}
