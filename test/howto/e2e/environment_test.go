package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gangctl/gangctl/internal/sandboxtest"
	"github.com/gangctl/gangctl/test/howto"
)

// lineTimeout is how long a documented line may take on a busy machine.
const lineTimeout = 2 * time.Minute

// installed puts the scheduler there under the names that guides use; it runs, with its own rights.
const installed = "gangctl install scheduler --image gangctl:local --serve volcano,kube-batch,scheduler-plugins-scheduler --timeout 80s"

// shared is the namespace of lines that only look.
const shared = "default"

// environment is a cluster in which documented lines are typed, and the directory and the environment in which that happens.
type environment struct {
	*sandboxtest.Cluster
	client kubernetes.Interface
	// dir is where lines are typed, homes has the homes of users, state where sandboxes are kept.
	dir, homes, state, root string
	bin                     string
	jobs                    map[string]bool // NAMESPACE/NAME that are there
	fresh                   int
}

// newEnvironment starts a sandbox in the place where gangctl-sandbox looks by itself, with room for every documented job.
func newEnvironment(t *testing.T) *environment {
	t.Helper()
	base := t.TempDir()
	w := &environment{dir: filepath.Join(base, "work"), homes: filepath.Join(base, "home"), state: filepath.Join(base, "state"), bin: filepath.Join(base, "bin"), jobs: map[string]bool{}}
	for _, dir := range []string{w.dir, w.bin} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	for name, program := range map[string]string{"gangctl": programs.gangctl, "kubectl-gang": programs.gangctl, "gangctl-sandbox": programs.sandbox} {
		must(t, os.Symlink(program, filepath.Join(w.bin, name)))
	}
	w.Cluster = sandboxtest.Start(t, sandboxtest.Options{
		DataDir: filepath.Join(w.state, "gangctl", "sandbox"),
		Args:    []string{"--nodes=24", "--gpus=8", "--cpu=96", "--memory=768Gi", "--run-for=0", "--scheduler=default", "--run-image=gangctl=" + programs.gangctl},
	})
	var err error
	w.root, err = filepath.Abs("../../..")
	must(t, err)
	w.client, err = kubernetes.NewForConfig(w.Config)
	must(t, err)
	w.must(t, shared, installed)
	return w
}

// environment is that of a user whose context has the namespace; each has a home, and settings, of their own.
func (w *environment) environment(t *testing.T, namespace string) []string {
	t.Helper()
	home := filepath.Join(w.homes, namespace)
	must(t, os.MkdirAll(home, 0o755))
	config, err := clientcmd.LoadFromFile(w.Kubeconfig)
	must(t, err)
	config.Contexts[config.CurrentContext].Namespace = namespace
	for _, other := range []string{"prod", "dev"} { // the names that documents use
		config.Contexts[other] = config.Contexts[config.CurrentContext].DeepCopy()
	}
	path := filepath.Join(w.dir, "kubeconfig-"+namespace)
	must(t, clientcmd.WriteToFile(*config, path))
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GANGCTL_") || strings.HasPrefix(v, "XDG_") })
	return append(env, "PATH="+w.bin+":"+os.Getenv("PATH"), "KUBECONFIG="+path, "HOME="+home, "XDG_STATE_HOME="+w.state, "ROOT="+w.root, "EDITOR=cat")
}

// shellOfUsers is what a line finds in the shell: some are for zsh, whose fpath is an array that counts from 1.
const shellOfUsers = `set -o pipefail; fpath=("" "$PWD"); `

// types types a line into a shell.
func (w *environment) types(t *testing.T, namespace, line string) (output string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lineTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", shellOfUsers+line)
	cmd.Dir, cmd.Env = w.dir, w.environment(t, namespace)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// must types a line that has to succeed.
func (w *environment) must(t *testing.T, namespace, line string) {
	t.Helper()
	if out, code := w.types(t, namespace, line); code != 0 {
		t.Fatalf("%s: exit code %d\n%s", line, code, out)
	}
}

// namespace makes sure that there is one.
func (w *environment) namespace(t *testing.T, name string) {
	t.Helper()
	_, err := w.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// newNamespace is one that no line has changed. It goes with the line, whose jobs would leave no room for those of the others.
func (w *environment) newNamespace(t *testing.T) string {
	t.Helper()
	w.fresh++
	name := fmt.Sprintf("line-%d", w.fresh)
	w.namespace(t, name)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), lineTimeout)
		defer cancel()
		must(t, w.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}))
	})
	return name
}

// job makes sure that a job of the name runs, or has come to the end that the line waits for.
func (w *environment) job(t *testing.T, namespace, name, until string) {
	t.Helper()
	if w.jobs[namespace+"/"+name] {
		return
	}
	w.jobs[namespace+"/"+name] = true
	flags, wait := "", "gangctl wait "+name+" --for running --timeout 60s"
	switch until {
	case "done":
		flags, wait = "--annotation sandbox.gangctl.dev/run-for=1s", "gangctl wait "+name+" --for done --timeout 60s"
	case "failed":
		// The operator deletes pods that run when the job fails: by its view, which may be older than what a line about the failure reads.
		flags = "--annotation sandbox.gangctl.dev/run-for=1s --annotation sandbox.gangctl.dev/exit-code=1 --restart-policy Never --clean-pod-policy None"
		wait = "gangctl wait " + name + " --for failed --timeout 60s"
	case "restarted":
		flags = "--annotation sandbox.gangctl.dev/run-for=1s --annotation sandbox.gangctl.dev/exit-code=1"
		wait = "timeout 60 sh -c 'until gangctl logs " + name + " --previous --index 2; do sleep 0.2; done'"
	}
	w.must(t, namespace, fmt.Sprintf("gangctl submit tf %s --image tf-benchmarks --workers 4 --gpus 1 --ps 1 %s -- python train.py && %s", name, flags, wait))
}

// end is how a command wants the job that it is about to have ended, or empty.
func end(c howto.Command) string {
	switch {
	case c.Flags["for"] == "done", c.Flags["for"] == "failed":
		return c.Flags["for"]
	case c.Flags["failed"] == "true", c.Flags["first-error"] == "true":
		return "failed"
	case c.Flags["previous"] == "true":
		return "restarted"
	}
	return ""
}

// looks are the commands that change nothing; others get a namespace of their own, with the jobs that they name.
var looks = []string{"list", "get", "describe", "events", "logs", "attach", "port-forward", "top", "wait", "why-pending", "fit", "check", "version", "completion", "help", "report"}

// names are the commands whose arguments are jobs.
var names = []string{"get", "describe", "events", "logs", "attach", "port-forward", "wait", "why-pending", "delete", "suspend", "resume", "resize", "resubmit", "report"}

// many are those that take several.
var many = []string{"delete", "suspend", "resume"}

// prepare makes what a line needs, and returns the namespace to type it in.
func (w *environment) prepare(t *testing.T, line string, commands []howto.Command) string {
	t.Helper()
	namespace := shared
	for _, c := range commands {
		if first, _, _ := strings.Cut(c.Verb, " "); !slices.Contains(looks, first) || end(c) != "" {
			namespace = w.newNamespace(t)
			break
		}
	}
	submitted := map[string]bool{}
	for _, c := range commands {
		in := namespace
		if other, ok := c.Flags["namespace"]; ok && !strings.HasPrefix(c.Verb, "install") {
			in = other
			w.namespace(t, in)
		}
		first, _, _ := strings.Cut(c.Verb, " ")
		if first == "submit" && len(c.Args) > 0 {
			submitted[c.Args[0]] = true
			w.must(t, in, "gangctl delete "+c.Args[0]+" --ignore-not-found >/dev/null 2>&1 || true")
		}
		if !slices.Contains(names, first) || c.Flags["from"] != "" {
			continue
		}
		for _, name := range c.Args {
			if _, after, ok := strings.Cut(name, "/"); ok {
				name = after
			}
			if slices.Contains([]string{"job", "tfjob", "pod"}, name) {
				continue
			}
			if !submitted[name] {
				w.job(t, in, name, end(c))
			}
			if !slices.Contains(many, first) {
				break
			}
		}
	}
	for _, g := range howto.Fixtures() {
		if g.Match.MatchString(line) {
			w.must(t, namespace, g.Do)
		}
	}
	return namespace
}
