package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/sandbox/addon"
)

// withControllers adds flags of `up` by which a sandbox runs controllers of other projects. They are built in modules that the tests do not
// depend on, see the target controllers of the Makefile: without them the test is skipped.
func withControllers(t *testing.T, names string, args ...string) []string {
	t.Helper()
	folder := os.Getenv("GANGCTL_KINDS")
	if folder == "" {
		t.Skip("needs GANGCTL_KINDS, as make kinds sets it")
	}
	return append([]string{"--controllers=" + folder, "--with=" + names}, args...)
}

// moduleOf is the folder of the module of a project, which has its samples.
func moduleOf(t *testing.T, name string) string {
	t.Helper()
	variable := "GANGCTL_" + strings.ToUpper(name) + "_MODULE"
	module := os.Getenv(variable)
	if module == "" {
		t.Skip("needs " + variable)
	}
	return module
}

// TestControllers has a sandbox run the controller of another project like its own: it is supervised, started again by another up, and gone after
// one without it.
func TestControllers(t *testing.T) {
	c := newCluster(t, withControllers(t, "jobset", "--nodes=3", "--cpu=16", "--gpus=8", "--operator=false")...)
	c.run(t, "submit", "-f", jobSetFile(t, "llama", "", "0"))
	c.podsOf(t, "llama").are(t, "all run", 4, runs)
	stdout, stderr, err := c.Run("status")
	if err != nil {
		t.Fatalf("status: %v\n%s", err, stderr)
	}
	matches(t, stdout, `^jobset +[0-9]+ +running +.*jobset\.log`)

	must(t, syscall.Kill(c.Components(t)["jobset"], syscall.SIGKILL))
	eventually(t, "its end is reported", func(context.Context) bool {
		_, stderr, err := c.Run("status")
		return err != nil && strings.Contains(stderr, "1 of the components ended: [jobset]")
	})
	if stdout, stderr, err := c.Run("up"); err != nil || !strings.Contains(stderr, "starting again: jobset had ended") {
		t.Fatalf("up: %v\n%s%s", err, stdout, stderr)
	}
	c.podsOf(t, "llama").are(t, "all run still", 4, runs)
	c.run(t, "suspend", "llama")
	c.podsOf(t, "llama").are(t, "the controller that was started again has taken its pods", 0, runs)

	must(t, syscall.Kill(c.Components(t)["gang-scheduler"], syscall.SIGKILL))
	eventually(t, "its end is reported", func(context.Context) bool {
		_, _, err := c.Run("status")
		return err != nil
	})
	if _, stderr, err := c.Run("up", "--with="); err != nil {
		t.Fatalf("up: %v\n%s", err, stderr)
	}
	if c.Components(t)["jobset"] != 0 {
		t.Error("it still runs")
	}
	webhooks, err := c.client.AdmissionregistrationV1().MutatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{LabelSelector: addon.Label})
	must(t, err)
	if len(webhooks.Items) != 0 {
		t.Errorf("webhooks without a server: %v", webhooks.Items[0].Name)
	}
	c.create(t, plain("free", "gang-scheduler", "1"))
	c.placed(t, "free")
}

// background runs a program on the cluster until the test ends. What it logs is shown if the test fails.
func (c *cluster) background(t *testing.T, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	must(t, err)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	cmd.Stdout, cmd.Stderr = log, log
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s logs:\n%s", filepath.Base(program), text)
		}
		must(t, log.Close())
	})
}
