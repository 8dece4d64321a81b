package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gangctl/gangctl/test/shell"
)

// shells completes what only the cluster knows, in every shell that is there.
func shells(t *testing.T, w *world) {
	const namespace = "completed"
	w.namespace(t, namespace)
	for i := range 110 {
		w.namespace(t, fmt.Sprintf("crowd-%03d", i))
	}
	w.job(t, namespace, "llama-small", "running")
	w.must(t, namespace, "gangctl submit tf llama-large --image i --workers 400 --gpus 8 -- true && gangctl submit tf other --image i -- true")
	scripts, err := filepath.Abs("../../../completions")
	must(t, err)
	complete := func(t *testing.T, s shell.Shell, line string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, _, err := s.Complete(ctx, shell.Session{Scripts: scripts, Home: t.TempDir(), Env: w.environment(t, namespace)}, line)
		must(t, err)
		return got
	}
	for _, s := range shell.Shells() {
		t.Run(s.Name, func(t *testing.T) {
			if why := s.Missing(); why != "" {
				t.Skip(why)
			}
			for line, want := range map[string][]string{
				"gangctl get llama-":                         {`llama-small\W+Running`, `llama-large\W+Pending`},
				"gangctl delete llama-small llama-":          {`large`},
				"gangctl list -n comp":                       {`leted`},
				"gangctl why-pending x --node node-":         {`node-1\b`, `node-12\b`},
				"gangctl logs llama-small --role ":           {`ps\W+1 member`, `worker\W+4 members`},
				"gangctl submit tf --priority-class system-": {`system-cluster-critical`, `system-node-critical`},
			} {
				got := complete(t, s, line)
				for _, word := range want {
					if !regexp.MustCompile(word).MatchString(got) {
						t.Errorf("%s: got %q, which lacks %s", line, got, word)
					}
				}
				if strings.Contains(got, "other") {
					t.Errorf("%s: got %q, of which not all begins so", line, got)
				}
			}
			if n := len(regexp.MustCompile(`crowd-\d`).FindAllString(complete(t, s, "gangctl list -n crowd-"), -1)); n < 100 || n > 101 {
				t.Errorf("%d namespaces are offered, want 100", n) // zsh also shows what was typed
			}
		})
	}
	w.must(t, namespace, "gangctl delete llama-large other --wait=false")
	t.Run("kubectl", func(t *testing.T) {
		cmd := exec.Command(filepath.Join(scripts, "kubectl_complete-gang"), "get", "llama-s")
		cmd.Env = w.environment(t, namespace)
		if out, err := cmd.Output(); err != nil || string(out) != "llama-small\tRunning\n:4\n" {
			t.Errorf("got %q, %v", out, err)
		}
	})
}
