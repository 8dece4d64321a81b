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
		dialect, name = strings.ReplaceAll(dialect, ":", ""), strings.ReplaceAll(name, ":", "")
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

// A plugin that knows Kubernetes' PodGroups finds them by their names.
func TestVirtualNameOfNative(t *testing.T) {
	want := Key{Dialect: Native, Namespace: "research", Name: "llama"}
	if got := want.VirtualName(); got != "llama" {
		t.Errorf("VirtualName() = %q", got)
	}
	if got, err := ParseVirtualName("research", "llama"); err != nil || got != want {
		t.Errorf("ParseVirtualName: %v, %v", got, err)
	}
}

func TestParseVirtualNameRefuses(t *testing.T) {
	for _, name := range []string{"", ":llama", "labels:", "native:llama"} {
		if k, err := ParseVirtualName("ns", name); err == nil {
			t.Errorf("ParseVirtualName(%q) = %v, want an error", name, k)
		}
	}
}
