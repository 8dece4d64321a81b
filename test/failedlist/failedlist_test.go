// Package failedlist tests that no command takes a list that failed for an empty one.
package failedlist

import (
	"context"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/gangctl/gangctl/internal/kubetest"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/cmd/root"
)

// reader is a command line that reads the cluster.
type reader struct {
	args string
	// kindless commands need no kind of job: that the cluster serves none is no trouble of theirs.
	kindless bool
	// answers is set for a command that answers that: no kind of job is a reason why a job does not run.
	answers bool
	// shows is set for a command that prints what failed as a part of its answer, on standard output.
	shows bool
}

// readers are the commands that read the cluster, by their path; every form of one that reads in another way.
var readers = map[string][]reader{
	"list":              {{args: ""}, {args: "-A"}, {args: "-o json"}, {args: "-o name"}},
	"get":               {{args: "llama"}, {args: "llama -o yaml"}},
	"describe":          {{args: "llama"}},
	"delete":            {{args: "llama"}},
	"suspend":           {{args: "llama"}},
	"resume":            {{args: "llama"}},
	"wait":              {{args: "llama --for=running"}, {args: "llama --for=done --timeout 5s"}},
	"logs":              {{args: "llama"}, {args: "llama -f"}},
	"attach":            {{args: "llama -- true"}},
	"port-forward":      {{args: "llama"}},
	"events":            {{args: "llama"}, {args: "llama -o json"}},
	"report":            {{args: "llama"}, {args: "llama -o json"}},
	"fit":               {{args: "--workers 2 --gpus 1", kindless: true}, {args: "--what-fits --gpus 1", kindless: true}},
	"fit tf":            {{args: "--workers 2 --gpus 1", kindless: true}, {args: "--what-fits --gpus 1", kindless: true}},
	"fit pytorch":       {{args: "--workers 2 --gpus 1", kindless: true}, {args: "--what-fits --gpus 1", kindless: true}},
	"fit mpi":           {{args: "--workers 2 --gpus 1", kindless: true}, {args: "--what-fits --gpus 1", kindless: true}},
	"fit ray":           {{args: "--workers 2 --gpus 1", kindless: true}, {args: "--what-fits --gpus 1", kindless: true}},
	"fit job":           {{args: "--workers 2 --gpus 1", kindless: true}, {args: "--what-fits --gpus 1", kindless: true}},
	"resubmit":          {{args: "llama --name b"}, {args: "llama --name b --dry-run=client"}},
	"resize":            {{args: "llama --workers 2"}, {args: "llama --workers 2 --diff"}, {args: "llama --workers 2 --dry-run=fit"}, {args: "llama --workers 2 --recreate"}},
	"why-pending":       {{args: "llama", answers: true}, {args: ""}, {args: "-A"}, {args: "llama -o json", answers: true}, {args: "llama --source scheduler"}, {args: "llama -w", answers: true}},
	"top node":          {{args: "", kindless: true}, {args: "-o json", kindless: true}, {args: "-w", kindless: true}},
	"top job":           {{args: ""}, {args: "-A"}, {args: "-o json"}, {args: "-w"}},
	"top queue":         {{args: ""}, {args: "-o json"}, {args: "-w"}},
	"submit tf":         {{args: "llama --image i"}, {args: "llama --image i --dialect none"}, {args: "llama --image i --dry-run=server"}},
	"submit pytorch":    {{args: "llama --image i"}, {args: "llama --image i --dialect none"}, {args: "llama --image i --dry-run=server"}},
	"submit mpi":        {{args: "llama --image i"}, {args: "llama --image i --dialect none"}, {args: "llama --image i --dry-run=server"}},
	"submit ray":        {{args: "llama --image i"}, {args: "llama --image i --dialect none"}, {args: "llama --image i --dry-run=server"}},
	"submit train":      {{args: "llama --image i"}, {args: "llama --image i --dialect none"}, {args: "llama --image i --dry-run=server"}},
	"submit job":        {{args: "llama --image i", kindless: true}, {args: "llama --image i --dialect none", kindless: true}, {args: "llama --image i --dry-run=server", kindless: true}},
	"check":             {{args: "", kindless: true, shows: true}, {args: "--pre", kindless: true, shows: true}, {args: "-o json", kindless: true, shows: true}},
	"install scheduler": {{args: "--image i", kindless: true}, {args: "--image i --skip-checks", kindless: true}, {args: "--image i --dry-run=server", kindless: true}, {args: "--image i --diff", kindless: true}},
	"install operator":  {{args: "", kindless: true}, {args: "--diff", kindless: true}},
	"upgrade":           {{args: "--image i", kindless: true}, {args: "--image i --diff", kindless: true}},
	"uninstall":         {{args: "", kindless: true}, {args: "--dry-run=server", kindless: true}},
}

// offline are the commands that read no cluster.
var offline = []string{"submit", "submit templates", "submit templates list", "submit templates show", "submit templates", "submit templates list", "submit templates show", "top", "install", "install images", "config", "config view", "config set", "config unset", "config use-profile", "config path",
	"version", "completion", "completion bash", "completion zsh", "completion fish", "completion powershell", "help", "docs"}

// Every command is known to read the cluster, and how it fails is tested, or known not to.
func TestEveryCommandIsKnown(t *testing.T) {
	tree, _, _ := gangctl(t)
	walk(tree, func(cmd *cobra.Command) {
		if !cmd.Runnable() || cmd == tree || cmd.IsAdditionalHelpTopicCommand() {
			return
		}
		name := strings.TrimPrefix(cmd.CommandPath(), tree.Name()+" ")
		if _, reads := readers[name]; reads == slices.Contains(offline, name) {
			t.Errorf("%s: add it to readers if it reads the cluster, else to offline, and to one of them only", name)
		}
	})
	for name := range readers {
		if cmd, rest, err := tree.Find(strings.Fields(name)); err != nil || len(rest) > 0 || cmd == tree {
			t.Errorf("%s: there is no such command", name)
		}
	}
}

// fault is what is wrong with a cluster, and what every command must report of it.
type fault struct {
	client   func(*testing.T) func() (*kube.Client, error)
	wantText *regexp.Regexp
	// kinds is set where only kinds of job are missing.
	kinds bool
}

var faults = map[string]fault{
	"401":             {client: refusing(401, metav1.StatusReasonUnauthorized), wantText: regexp.MustCompile(`401 Unauthorized`)},
	"403":             {client: refusing(403, metav1.StatusReasonForbidden), wantText: regexp.MustCompile(`User "bob" cannot [a-z]+|may not|no right`)},
	"404 of the kind": {client: kindless, wantText: regexp.MustCompile(`does not serve|get job [a-z/-]+: not found|are not served`), kinds: true},
	"timeout":         {client: away("no answer from the API server"), wantText: regexp.MustCompile(`no answer from the API server`)},
	"refused":         {client: away("cannot reach the API server"), wantText: regexp.MustCompile(`cannot reach the API server`)},
}

// No command takes a list that failed for an empty one: it reports what failed and why, what to do next, prints nothing that looks
// like an answer, and does not succeed.
func TestFailedListIsAnError(t *testing.T) {
	for trouble, f := range faults {
		client := f.client(t)
		for name, lines := range readers {
			for _, line := range lines {
				if f.kinds && (line.kindless || line.answers) {
					continue
				}
				t.Run(trouble+"/"+strings.TrimSpace(name+" "+line.args), func(t *testing.T) {
					t.Parallel() // most of the time goes by in waiting for an answer that does not come
					fails(t, client, f.wantText, name, line)
				})
			}
		}
	}
}

// gangctl is the program as a user runs it into pipes.
func gangctl(t *testing.T) (*cobra.Command, *cmdutil.Factory, func() (string, string)) {
	t.Helper()
	io, _, out, errOut := iostreams.Test(clocktesting.NewFakeClock(time.Time{}))
	home := t.TempDir()
	f := &cmdutil.Factory{IO: io, Getenv: func(key string) string { return map[string]string{"HOME": home}[key] }}
	return root.NewCommand(f), f, func() (string, string) { return out.String(), errOut.String() }
}

func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, visit)
	}
}

// patience is how long a command may take to find out that nothing can be had.
const patience = 10 * time.Second

func fails(t *testing.T, client func() (*kube.Client, error), wantText *regexp.Regexp, name string, line reader) {
	t.Helper()
	args, err := shell.Split(name + " " + line.args)
	if err != nil {
		t.Fatal(err)
	}
	_, f, output := gangctl(t)
	f.Args, f.Client = args, client
	f.Namespace = func() (string, error) { return "default", nil }
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	code := root.Execute(ctx, f, root.NewCommand(f))
	stdout, stderr := output()
	if ctx.Err() != nil {
		t.Errorf("it does not end, and says:\n%s", stderr)
	}
	if code == failure.CodeOK || code == failure.CodeUsage {
		t.Errorf("exit code %d", code)
	}
	if line.shows {
		if !wantText.MatchString(stdout + stderr) {
			t.Errorf("it does not say %s:\n%s\n%s", wantText, stdout, stderr)
		}
		return
	}
	if stdout != "" {
		t.Errorf("standard output is not empty:\n%s", stdout)
	}
	if !strings.Contains("\n"+stderr, "\nerror: ") || !strings.Contains(stderr, "\nhint: ") || !wantText.MatchString(stderr) {
		t.Errorf("want an error that says %s, and a hint, got:\n%s", wantText, stderr)
	}
}

func away(what string) func(*testing.T) func() (*kube.Client, error) {
	return func(t *testing.T) func() (*kube.Client, error) { return kubetest.Away(t)[what] }
}

// refusing is a server that refuses everything with the messages of an API server.
func refusing(code int, reason metav1.StatusReason) func(*testing.T) func() (*kube.Client, error) {
	verbs := map[string]string{http.MethodPost: "create", http.MethodPatch: "patch", http.MethodDelete: "delete", http.MethodPut: "update"}
	return func(t *testing.T) func() (*kube.Client, error) {
		s := kubetest.New(t)
		s.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			verb, resource := verbs[r.Method], path.Base(r.URL.Path)
			if verb == "" {
				verb = "list"
			}
			message := http.StatusText(code)
			if code == http.StatusForbidden {
				message = resource + ` is forbidden: User "bob" cannot ` + verb + ` resource "` + resource + `"`
			}
			kubetest.Write(w, code, kubetest.Status(code, reason, message, nil))
		})
		return s.Client
	}
}

// kindless is a server without any kind but those of Kubernetes itself, of which there are no objects.
func kindless(t *testing.T) func() (*kube.Client, error) {
	s := kubetest.New(t)
	s.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		switch {
		case r.URL.Path == "/version":
			kubetest.Write(w, 200, map[string]string{"gitVersion": "v1.37.1"})
		case r.URL.Path == "/api":
			kubetest.Write(w, 200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		case r.URL.Path == "/apis":
			kubetest.Write(w, 200, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}, Groups: []metav1.APIGroup{}})
		case r.URL.Path == "/api/v1":
			kubetest.Write(w, 200, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: "v1", APIResources: []metav1.APIResource{
				{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: []string{"list"}}}})
		case parts[0] == "apis" && strings.Contains(parts[1], ".") && !builtIn[parts[1]]:
			http.NotFound(w, r) // as an API server answers for a path that it does not know
		case r.Method == http.MethodGet && r.URL.Query().Has("resourceVersion"):
			kubetest.Write(w, 200, map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": []any{}})
		default:
			name := path.Base(r.URL.Path)
			kubetest.Write(w, 404, kubetest.Status(404, metav1.StatusReasonNotFound, name+" not found", &metav1.StatusDetails{Name: name}))
		}
	})
	return s.Client
}

// builtIn are groups of Kubernetes itself that have a dot.
var builtIn = map[string]bool{"coordination.k8s.io": true, "storage.k8s.io": true, "scheduling.k8s.io": true, "node.k8s.io": true, "resource.k8s.io": true}
