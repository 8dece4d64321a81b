package command

import (
	"os/exec"
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	tests := []struct{ got, want string }{
		{Kubectl("", "get", "nodes"), "kubectl get nodes"},
		{Kubectl("team", "logs", "x", ""), "kubectl -n team logs x ''"},
		{Kubectl("team", "x", "a b"), "kubectl -n team x 'a b'"},
		{MergePatch("team", "tfjob", "j", map[string]any{"spec": 1}), `kubectl -n team patch tfjob j --type=merge -p '{"spec":1}'`},
		{JSONPatch("", "q", "j", Patch{Op: "replace", Path: "/a/" + Escape("nvidia.com/gpu"), Value: "8"}), `kubectl patch q j --type=json -p '[{"op":"replace","path":"/a/nvidia.com~1gpu","value":"8"}]'`},
		{Then("a", "", "b"), "a\nb"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got  %s\nwant %s", tt.got, tt.want)
		}
	}
}

// A shell hands every word over as it was.
func TestQuoting(t *testing.T) {
	words := []string{"it's", "$HOME", "a b", `"x"`, "*", "~", "a;b", "{}", "plain"}
	parts := strings.TrimPrefix(Kubectl("", words...), "kubectl ")
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+parts).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSuffix(string(out), "\n"); got != strings.Join(words, "\n") {
		t.Errorf("got %q", got)
	}
}
