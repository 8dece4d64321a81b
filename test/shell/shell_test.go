package shell

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/internal/prerequisite"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/root"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gangctl": gangctl, "kubectl-gang": gangctl})
}

func gangctl() {
	f := &cmdutil.Factory{IO: iostreams.System(os.Getenv), Program: os.Args[0], Args: os.Args[1:], Getenv: os.Getenv}
	os.Exit(int(root.Execute(context.Background(), f, root.NewCommand(f))))
}

func session(t *testing.T, kubeconfig string) Session {
	t.Helper()
	scripts, err := filepath.Abs("../../completions")
	if err != nil {
		t.Fatal(err)
	}
	return Session{Scripts: scripts, Home: t.TempDir(), Env: []string{"KUBECONFIG=" + kubeconfig}}
}

// each runs a test in every shell that is there.
func each(t *testing.T, test func(t *testing.T, complete func(kubeconfig, line string) string)) {
	for _, s := range Shells() {
		t.Run(s.Name, func(t *testing.T) {
			prerequisite.Program(t, s.Name)
			test(t, func(kubeconfig, line string) string {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got, err := s.Complete(ctx, session(t, kubeconfig), line)
				if err != nil {
					t.Fatal(err)
				}
				return got
			})
		})
	}
}

// What is known without a cluster: commands, the values of a flag, contexts, profiles, help topics.
func TestCompletesArguments(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	content := "apiVersion: v1\nkind: Config\ncontexts:\n- {name: prod-east, context: {cluster: c}}\n- {name: prod-west, context: {cluster: c}}\nclusters:\n- {name: c, cluster: {server: 'http://127.0.0.1:1'}}\n"
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, complete func(kubeconfig, line string) string) {
		for line, want := range map[string][]string{
			"gangctl why":                         {"why-pending"},
			"gangctl submit tf --dialect sched":   {"scheduler-plugins"},
			"gangctl --color ":                    {"auto", "always", "never"},
			"gangctl config use":                  {"use-profile"},
			"gangctl list --context prod":         {"prod-east", "prod-west"},
			"gangctl wait x --for ":               {"scheduled", "running", "done", "failed"},
			"gangctl help form":                   {"formatting"},
			"gangctl list -o custom":              {"custom-columns="},
			"gangctl submit tf --restart-policy ": {"Never", "OnFailure", "Always", "ExitCode"},
		} {
			got := complete(kubeconfig, line)
			for _, word := range want {
				if !strings.Contains(got, word) && !strings.HasSuffix(line+got, word) {
					t.Errorf("%s: got %q, which lacks %s", line, got, word)
				}
			}
		}
	})
}

func TestScriptsAreClean(t *testing.T) {
	for _, check := range [][]string{
		{"bash", "-n", "gangctl.bash"}, {"sh", "-n", "kubectl_complete-gang"}, {"zsh", "-n", "_gangctl"}, {"fish", "--no-execute", "gangctl.fish"},
	} {
		t.Run(check[0], func(t *testing.T) {
			cmd := exec.Command(prerequisite.Program(t, check[0]), check[1:]...)
			cmd.Dir = "../../completions"
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%q: %v\n%s", check, err, out)
			}
		})
	}
}

func TestKubectlPlugin(t *testing.T) {
	cmd := exec.Command("../../completions/kubectl_complete-gang", "why")
	if got, err := run(session(t, os.DevNull), cmd); err != nil || !strings.HasPrefix(got, "why-pending\t") || !strings.HasSuffix(got, "\n:4\n") {
		t.Errorf("got %q, %v", got, err)
	}
}

// deadServers are kubeconfigs of servers that are no use: one that refuses connections, and one that accepts them and never answers.
func deadServers(t *testing.T) map[string]string {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	dead := map[string]string{}
	for name, address := range map[string]string{"refuses": kubetest.Refusing(t), "never answers": silent.Addr().String()} {
		path := filepath.Join(t.TempDir(), "config")
		content := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- {name: c, cluster: {server: 'http://" + address + "'}}\ncontexts:\n- {name: c, context: {cluster: c}}\n"
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		dead[name] = path
	}
	return dead
}

// With a dead API server, nothing is offered, without a message. How long it may take is tested in package cmdutil, where no busy machine counts.
func TestDeadServerIsSilent(t *testing.T) {
	dead := deadServers(t)
	each(t, func(t *testing.T, complete func(kubeconfig, line string) string) {
		for name, kubeconfig := range dead {
			for _, line := range []string{"gangctl get ", "gangctl list -n ", "gangctl why-pending x --node ", "gangctl logs x --role "} {
				if got := complete(kubeconfig, line); got != "" {
					t.Errorf("%s, %s: got %q", name, line, got)
				}
			}
		}
	})
}

func TestDeadServerAndKubectl(t *testing.T) {
	for name, kubeconfig := range deadServers(t) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := run(session(t, kubeconfig), exec.CommandContext(ctx, "../../completions/kubectl_complete-gang", "get", ""))
		if err != nil || got != ":4\n" {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}
