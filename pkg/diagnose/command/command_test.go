package command

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

func TestCommands(t *testing.T) {
	tests := []struct{ got, want string }{
		{Kubectl("", "get", "nodes"), "kubectl get nodes"},
		{Kubectl("team", "logs", "x", ""), "kubectl -n team logs x ''"},
		{Kubectl("team", "x", "a b"), "kubectl -n team x 'a b'"},
		{Kubectl("a;b", "x"), "kubectl -n 'a;b' x"},
		{MergePatch("team", "tfjob", "j", map[string]any{"spec": 1}), `kubectl -n team patch tfjob j --type=merge -p '{"spec":1}'`},
		{JSONPatch("", "q", "j", Patch{Op: "replace", Path: "/a/" + escape("nvidia.com/gpu"), Value: "8"}), `kubectl patch q j --type=json -p '[{"op":"replace","path":"/a/nvidia.com~1gpu","value":"8"}]'`},
		{JSONPatch("", "q", "j", Patch{Op: "add", Path: "/n", Value: 0}, Patch{Op: "remove", Path: "/m"}), `kubectl patch q j --type=json -p '[{"op":"add","path":"/n","value":0},{"op":"remove","path":"/m"}]'`},
		{Then("a", "", "b"), "a\nb"},
		{Pipe("a", "b"), "a | b"},
		{Pointer([]string{"spec", "capability", "nvidia.com/gpu"}), "/spec/capability/nvidia.com~1gpu"},
		{Pointer([]any{"spec", 0, "a/b"}), "/spec/0/a~1b"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got  %s\nwant %s", tt.got, tt.want)
		}
	}
}

// A shell that reads an eviction sends one object to one pod.
func TestEvict(t *testing.T) {
	text := Evict("team", "web-0")
	send, ask, _ := strings.Cut(text, " | ")
	if ask != "kubectl create --raw /api/v1/namespaces/team/pods/web-0/eviction -f -" {
		t.Errorf("got %s", ask)
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", send).Output()
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(out, &body); err != nil {
		t.Fatal(err)
	}
	if body.APIVersion != "policy/v1" || body.Kind != "Eviction" || body.Metadata.Namespace != "team" || body.Metadata.Name != "web-0" {
		t.Errorf("got %+v", body)
	}
}

func TestWithin(t *testing.T) {
	mine := func(namespace string) bool { return namespace == "team" }
	for command, want := range map[string]bool{
		"":                            true,
		Kubectl("", "get", "nodes"):   true,
		Kubectl("team", "logs", "x"):  true,
		Kubectl("other", "logs", "x"): false,
		Kubectl("teams", "logs", "x"): false,
		Evict("team", "x-0"):          true,
		Evict("other", "x-0"):         false,
		Then(Kubectl("team", "get", "a"), Kubectl("other", "get", "a")): false,
		Pipe(Kubectl("team", "get", "a"), Kubectl("other", "get", "a")): false,
	} {
		if got := Within(command, mine); got != want {
			t.Errorf("%q: %v, want %v", command, got, want)
		}
	}
}
