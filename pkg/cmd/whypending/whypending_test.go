package whypending

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
)

// saved is a file with one gang that waits, one that cannot start and one that runs.
func saved(t *testing.T) string {
	t.Helper()
	c := clustertest.New().Nodes(2, 8).Runs("a", 8, "n1", "n2")
	c.Add(clustertest.Gang{Name: "llama", Workers: 2, GPUs: 8}).Add(clustertest.Gang{Name: "huge", Workers: 1, GPUs: 16})
	path := filepath.Join(t.TempDir(), "s.yaml.gz")
	if err := c.Done().Save(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs the command in namespace team; there is no cluster.
func run(t *testing.T, args ...string) (stdout, stderr string, code failure.Code, err error) {
	t.Helper()
	io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(clustertest.Now.Add(time.Hour)))
	f := &cmdutil.Factory{IO: io, Namespace: func() (string, error) { return "team", nil },
		Client: func() (*kube.Client, error) { return nil, errors.New("no cluster") }}
	cmd := NewCommand(f, nil)
	cmd.Flags().StringP("namespace", "n", "", "")
	err = commandtest.Execute(t.Context(), cmd, args...)
	if failed := failure.From(err); failed != nil {
		code = failed.Code
	}
	return out.String(), errOut.String(), code, err
}

func TestAnswers(t *testing.T) {
	file := saved(t)
	tests := []struct {
		name string
		args []string
		code failure.Code
		want []string
	}{
		{"by name", []string{"llama"}, 3, []string{"WAITING  0 of 16 GPUs free", "Starts by itself when  research/a ends"}},
		{"by kind", []string{"tfjob/llama"}, 3, []string{"WAITING"}},
		{"by kind and name", []string{"job", "llama"}, 3, []string{"WAITING"}},
		{"as it is printed", []string{"tfjob.kubeflow.org/llama"}, 3, []string{"WAITING"}},
		{"by pod", []string{"pod/huge-worker-0"}, 6, []string{"BLOCKED"}},
		{"quiet", []string{"llama", "-q"}, 3, []string{"WAITING"}},
		{"every node", []string{"llama", "-v"}, 3, []string{"requested 8, available 0, total 8"}},
		{"one node", []string{"llama", "--node", "n2"}, 3, []string{"Why not n2", "held by TFJob research/a"}},
		{"yaml", []string{"llama", "-o", "yaml"}, 3, []string{"apiVersion: gangctl.why/v1", "verdict: WAITING"}},
		{"every gang", nil, 6, []string{"NAMESPACE", "huge    BLOCKED", "llama   WAITING"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, _, code, _ := run(t, append(tt.args, "--from", file)...)
			if code != tt.code {
				t.Errorf("exit %d, want %d", code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if tt.name == "quiet" && strings.Count(out, "\n") != 1 {
				t.Errorf("more than a line:\n%s", out)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	file := saved(t)
	out, _, code, _ := run(t, "llama", "-o", "json", "--from", file)
	var a struct {
		Verdict string
		Exit    failure.Code
		Primary struct{ Code string }
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatal(err)
	}
	if a.Verdict != "WAITING" || a.Exit != code || a.Primary.Code != "NODES_BUSY" {
		t.Errorf("got %+v exit %d", a, code)
	}
	out, _, _, _ = run(t, "-o", "json", "--from", file)
	var list struct{ Items []any }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 2 {
		t.Errorf("got %d items, %v", len(list.Items), err)
	}
}

func TestSaveWhatWasRead(t *testing.T) {
	first := saved(t)
	second := filepath.Join(t.TempDir(), "again.yaml")
	before, _, _, _ := run(t, "llama", "--from", first)
	if _, stderr, _, _ := run(t, "llama", "--from", first, "--save", second); !strings.Contains(stderr, second) {
		t.Errorf("nothing is reported of the file: %q", stderr)
	}
	if out, _, code, err := run(t, "llama", "--from", first, "--save", second); code != 1 || err == nil || err.Error() != "save snapshot: "+second+" is there already" || out != "" {
		t.Errorf("written over: exit %d, %v, %q", code, err, out)
	}
	if _, stderr, _, _ := run(t, "llama", "--from", first, "--save", second, "--overwrite"); !strings.Contains(stderr, second) {
		t.Errorf("--overwrite: %q", stderr)
	}
	if _, stderr, _, _ := run(t, "llama", "--from", first, "--save", os.DevNull); !strings.Contains(stderr, os.DevNull) {
		t.Errorf("a device: %q", stderr)
	}
	if after, _, _, _ := run(t, "llama", "--from", second); after != before {
		t.Errorf("another answer from the saved file:\n%s\n%s", before, after)
	}
}

func TestErrors(t *testing.T) {
	file := saved(t)
	tests := []struct {
		args []string
		code failure.Code
		want string
	}{
		{[]string{"lama", "--from", file}, 1, `get job team/lama: not found`},
		{[]string{"llama", "--from", "absent.yaml"}, 1, "read snapshot: open absent.yaml"},
		{[]string{"llama", "--from", file, "--node", "n9"}, 1, `no node "n9"`},
		{[]string{"llama", "--from", file, "--save", "-"}, 2, "--save -: standard output is for the answer"},
		{[]string{"llama", "--from", file, "--overwrite"}, 2, "--overwrite has no effect without --save"},
		{[]string{"llama", "--from", file, "--source", "cluster"}, 2, "--source has no effect with --from"},
		{[]string{"llama", "--from", "/dev/zero"}, 1, "read snapshot /dev/zero: it is not text"},
		{[]string{"llama"}, 1, "no cluster"},
		{[]string{"a", "b", "c"}, 2, "takes one job"},
		{[]string{"widget/x"}, 2, `unknown kind "widget"`},
		{[]string{"cronjob/x"}, 2, `unknown kind "cronjob"`},
		{[]string{"tfjob.example.com/x"}, 2, `unknown kind "tfjob.example.com"`},
		{[]string{"tfjob/"}, 2, "want KIND/NAME"},
		{[]string{"llama", "-A"}, 2, "--all-namespaces"},
		{[]string{"-A", "-n", "x"}, 2, "cannot be used together"},
		{[]string{"--node", "n1"}, 2, "need the name of a job"},
		{[]string{"llama", "-q", "-v"}, 2, "cannot be used together"},
		{[]string{"llama", "-w", "--from", file}, 2, "--watch needs a cluster"},
		{[]string{"-w"}, 2, "--watch needs the name"},
		{[]string{"llama", "-w", "--interval", "1ms"}, 2, "--interval 1ms"},
		{[]string{"llama", "-o", "xml"}, 2, "--output"},
	}
	for _, tt := range tests {
		out, _, code, err := run(t, tt.args...)
		if code != tt.code || err == nil || !strings.Contains(err.Error(), tt.want) || out != "" {
			t.Errorf("%v: got exit %d, %v, stdout %q", tt.args, code, err, out)
		}
	}
}

func TestNothingWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := clustertest.New().Done().Save(path); err != nil {
		t.Fatal(err)
	}
	out, stderr, code, _ := run(t, "--from", path)
	if out != "" || code != 0 || !strings.Contains(stderr, "no gang waits in namespace team") {
		t.Errorf("got %q %q exit %d", out, stderr, code)
	}
}
