package root

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
)

// kubeconfig has a context of a server that is not there, and is not the current one.
const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: staging, context: {cluster: c, user: u}}]
`

// A command that is printed leads to the cluster of the run that printed it, wherever it is printed. Data is the same for everybody.
func TestPrintedCommands(t *testing.T) {
	dir := t.TempDir()
	config, snapshot := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "cluster.yaml")
	if err := os.WriteFile(config, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := clustertest.New().Nodes(2, 8).Runs("a", 8, "n1").Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8}).Done().Save(snapshot); err != nil {
		t.Fatal(err)
	}
	reached := []string{"--kubeconfig", config, "--context", "staging"}
	with := " --kubeconfig " + config + " --context staging "
	for name, tt := range map[string]struct {
		args      []string
		want, not []string
	}{
		"a hint":                  {args: []string{"get", "llama"}, want: []string{"hint: check that the cluster is up and that its address is right, which your context has, or --server: kubectl" + with + "config get-contexts"}},
		"before the command runs": {args: []string{"get"}, want: []string{"hint: for all jobs: gangctl" + with + "list"}},
		"an answer": {args: []string{"why-pending", "llama", "-n", "team", "--from", snapshot},
			want: []string{"gangctl" + with + "resize llama --workers 1 -n team"}, not: []string{"kubectl -n", "gangctl resize"}},
		"another job": {args: []string{"why-pending", "lama", "-n", "team", "--from", snapshot, "--apply", "1"}, want: []string{"leave out --from"}},
		"data":        {args: []string{"why-pending", "llama", "-n", "team", "--from", snapshot, "-o", "json"}, want: []string{"gangctl resize llama --workers 1 -n team"}, not: []string{"staging"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, f, printed := newRoot(t, append(tt.args, reached...)...)
			Execute(t.Context(), f, cmd)
			out, errOut := printed()
			for _, want := range tt.want {
				if !strings.Contains(out+errOut, want) {
					t.Errorf("%q is not in\n%s%s", want, out, errOut)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(out+errOut, not) {
					t.Errorf("%q is in\n%s%s", not, out, errOut)
				}
			}
		})
	}
}

// A second tree of commands, in which `resubmit` runs, has not read the flags that the user typed.
func TestPrintedCommandsOfAnotherTree(t *testing.T) {
	cmd, f, _ := newRoot(t, "list", "--context", "staging", "--kubeconfig", filepath.Join(t.TempDir(), "none"))
	Execute(t.Context(), f, cmd)
	second := *f
	second.Args, second.Client = []string{"version"}, func() (*kube.Client, error) { return nil, nil }
	Execute(t.Context(), &second, NewCommand(&second))
	if got := f.IO.Commands("kubectl get nodes"); !strings.HasSuffix(got, "--context staging get nodes") {
		t.Errorf("got %s", got)
	}
}
