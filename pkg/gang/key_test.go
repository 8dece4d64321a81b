package gang

import (
	"strings"
	"testing"
	"testing/quick"
)

func TestKeyString(t *testing.T) {
	k := Key{Dialect: Labels, Namespace: "research", Name: "llama"}
	if got, want := k.String(), "labels:research/llama"; got != want {
		t.Errorf("String() = %q, want %q", got, want)
	}
}

func TestVirtualNameRoundTrip(t *testing.T) {
	roundTrip := func(dialect, namespace, name string) bool {
		dialect = strings.ReplaceAll(dialect, ":", "")
		if dialect == "" || name == "" {
			return true
		}
		want := Key{Dialect: Dialect(dialect), Namespace: namespace, Name: name}
		got, err := ParseVirtualName(namespace, want.VirtualName())
		return err == nil && got == want
	}
	if err := quick.Check(roundTrip, nil); err != nil {
		t.Error(err)
	}
}

func TestParseVirtualNameRefuses(t *testing.T) {
	for _, name := range []string{"", "llama", ":llama", "labels:"} {
		if k, err := ParseVirtualName("ns", name); err == nil {
			t.Errorf("ParseVirtualName(%q) = %v, want an error", name, k)
		}
	}
}
