package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/internal/clustertest"
	"github.com/gangctl/gangctl/internal/commandtest"
	"github.com/gangctl/gangctl/internal/historytest"
	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/diagnose/history"
)

// run runs the command line in namespace team; width 0 is a pipe.
func run(t *testing.T, client func() (*kube.Client, error), width int, args ...string) (stdout, stderr string, failed *failure.Error) {
	t.Helper()
	f, streams := commandtest.Factory("team", clustertest.Now, width, client)
	return commandtest.Run(t.Context(), NewCommand(f, nil), streams, args...)
}

// saved is a file with the pending gang.
func saved(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "llama.yaml.gz")
	if err := historytest.Pending().Save(file); err != nil {
		t.Fatal(err)
	}
	return file
}

// The page of a cluster is that of the snapshot which was saved of it.
func TestPage(t *testing.T) {
	live, stderr, failed := run(t, kubetest.Serve(t, historytest.Pending()).Client, 0, historytest.Job)
	if failed != nil || stderr != "" {
		t.Fatal(failed, stderr)
	}
	kept, _, failed := run(t, nil, 0, "tfjob/"+historytest.Job, "--from", saved(t))
	if failed != nil {
		t.Fatal(failed)
	}
	printed, _, failed := run(t, nil, 0, "tfjob.kubeflow.org/"+historytest.Job, "--from", saved(t))
	if failed != nil {
		t.Fatal(failed)
	}
	for name, page := range map[string]string{"live": live, "from a file": kept, "of a name as it is printed": printed} {
		if !strings.HasPrefix(page, "<!doctype html>") || !strings.Contains(page, "worker-3") || !strings.Contains(page, "TOO_BIG") || strings.Contains(page, historytest.Secret) {
			t.Errorf("%s: %.300s", name, page)
		}
	}
}

// A report is looked at in terminals and browsers, and what tenants wrote must not command the one or mislead in the other.
func TestNoControlCharacters(t *testing.T) {
	const evil = "\x1b]52;c;cm0gLXJm\a\u009b2J\u202e"
	s := historytest.Pending()
	for _, groups := range s.Custom {
		for _, u := range groups {
			if spec, ok := u.Object["spec"].(map[string]any); ok && u.GetKind() == "PodGroup" {
				spec["queue"] = "evil" + evil
			}
		}
	}
	for _, args := range [][]string{{historytest.Job}, {historytest.Job, "-o", "json"}} {
		stdout, _, failed := run(t, kubetest.Serve(t, s).Client, 0, args...)
		if failed != nil || !strings.Contains(stdout, "evil") || strings.ContainsAny(stdout, "\x1b\a\u009b\u202e") {
			i := strings.Index(stdout, "evil")
			t.Errorf("%v: %v, %q", args, failed, stdout[max(i, 0):min(len(stdout), i+60)])
		}
	}
}

func TestJSON(t *testing.T) {
	stdout, _, failed := run(t, nil, 80, historytest.Job, "-o", "json", "--from", saved(t))
	var r history.Report
	if err := json.Unmarshal([]byte(stdout), &r); failed != nil || err != nil || r.APIVersion != history.APIVersion || len(r.Lanes) != 4 || r.Now == nil {
		t.Errorf("got %v, %v, %.300s", failed, err, stdout)
	}
}

// A file appears whole, and takes the place of no other unless that is meant.
func TestFile(t *testing.T) {
	from, file := saved(t), filepath.Join(t.TempDir(), "llama.html")
	stdout, stderr, failed := run(t, nil, 80, historytest.Job, "--from", from, "--file", file)
	if failed != nil || stdout != "" || stderr != "wrote the report on TFJob team/llama to "+file+"\n" {
		t.Fatalf("got %+v, %q, %q", failed, stdout, stderr)
	}
	first, err := os.ReadFile(file)
	if err != nil || !strings.HasSuffix(string(first), "</html>\n") {
		t.Fatalf("got %v, %.100s", err, first)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info, err)
	}
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, failed := run(t, nil, 80, historytest.Job, "--from", from, "--file", file); failed == nil || failed.Message != "write report: "+file+" is there already" || !strings.Contains(failed.Hint, "--overwrite") {
		t.Errorf("got %+v", failed)
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != "mine" {
		t.Errorf("got %v, %q", err, kept)
	}
	if _, _, failed := run(t, nil, 80, historytest.Job, "--from", from, "--file", file, "--overwrite"); failed != nil {
		t.Error(failed)
	}
	if again, err := os.ReadFile(file); err != nil || string(again) != string(first) {
		t.Errorf("got %v, %.100s", err, again)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	nowhere := filepath.Join(t.TempDir(), "no", "llama.html")
	if _, _, failed := run(t, nil, 80, historytest.Job, "--from", from, "--file", nowhere); failed == nil || !strings.HasPrefix(failed.Message, "write report: ") {
		t.Errorf("got %+v", failed)
	}
}

// What is no regular file is written through, and never replaced; - is standard output.
func TestFileThatIsNone(t *testing.T) {
	from, dir := saved(t), t.TempDir()
	page, _, _ := run(t, nil, 0, historytest.Job, "--from", from, "--file", "-")
	if !strings.HasPrefix(page, "<!doctype html>") {
		t.Errorf("standard output: %.100s", page)
	}
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(target, nil, 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	if _, _, failed := run(t, nil, 0, historytest.Job, "--from", from, "--file", link); failed == nil || failed.Message != "write report: "+link+" is there already" {
		t.Errorf("a link to a file: %+v", failed)
	}
	if _, _, failed := run(t, nil, 0, historytest.Job, "--from", from, "--file", os.DevNull); failed != nil {
		t.Errorf("a device: %+v", failed)
	}
	for _, path := range []string{link, os.DevNull} {
		if _, _, failed := run(t, nil, 0, historytest.Job, "--from", from, "--file", path, "--overwrite"); failed != nil {
			t.Errorf("%s: %+v", path, failed)
		}
	}
	info, err := os.Lstat(link)
	if text, read := os.ReadFile(target); err != nil || info.Mode().IsRegular() || read != nil || string(text) != page {
		t.Errorf("got %v, %v, %.100s", err, read, text)
	}
}

// A name that another user could foresee is not written to: a link there would lead the report over another file.
func TestTemporaryFile(t *testing.T) {
	from, dir := saved(t), t.TempDir()
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, fmt.Sprintf(".llama.html.%d", os.Getpid()))); err != nil {
		t.Fatal(err)
	}
	if _, _, failed := run(t, nil, 80, historytest.Job, "--from", from, "--file", filepath.Join(dir, "llama.html")); failed != nil {
		t.Fatal(failed)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "mine" {
		t.Errorf("got %v, %.50s", err, text)
	}
}

func TestValidate(t *testing.T) {
	for args, want := range map[string]string{
		"":                   "report needs the name of one job, got 0",
		"a b":                "report needs the name of one job, got 2",
		"a -o yaml":          `--output "yaml": must be one of html, json`,
		"a":                  "refusing to write HTML to a terminal",
		"a --overwrite":      "--overwrite has no effect without --file",
		"x/a --file f":       `unknown kind "x": must be one of`,
		"tfjob/ --file f":    `"tfjob/": want KIND/NAME`,
		"tfjob/a/b --file f": `"tfjob/a/b": want KIND/NAME`,
	} {
		_, _, failed := run(t, nil, 80, strings.Fields(args)...)
		if failed == nil || !strings.HasPrefix(failed.Message, want) || failed.Code != failure.CodeUsage {
			t.Errorf("%s: got %+v", args, failed)
		}
	}
}

func TestNotFound(t *testing.T) {
	for args, want := range map[string][2]string{
		"lama":            {`get job team/lama: not found`, "did you mean llama?"},
		"pytorchjob/zzzz": {`get PyTorchJob team/zzzz: not found`, "gangctl top job -A --from "},
	} {
		stdout, _, failed := run(t, nil, 0, args, "--from", saved(t))
		if stdout != "" || failed == nil || failed.Message != want[0] || !strings.Contains(failed.Hint, want[1]) || failed.Code != failure.CodeError {
			t.Errorf("%s: got %+v, %q", args, failed, stdout)
		}
	}
	if _, _, failed := run(t, nil, 0, "llama", "--from", "no-such-file"); failed == nil || !strings.Contains(failed.Hint, "--save FILE") {
		t.Errorf("got %+v", failed)
	}
}
