package e2e

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"

	"github.com/gangctl/gangctl/pkg/cluster/document"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
)

// controller is a program of others that makes pods of objects, and has webhooks.
type controller struct {
	program string
	// configuration begins the file of its configuration, which goes on with where its webhooks are.
	configuration string
	// webhooks is the file with the definitions of its webhooks, as it ships them: they name a Service.
	webhooks string
	args     []string
}

// startController runs a controller until the test ends, outside of the cluster, and has the API server call its webhooks there.
func (c *cluster) startController(t *testing.T, p controller) {
	t.Helper()
	dir := t.TempDir()
	certificate := writeCertificate(t, dir)
	port := freePort(t)
	configuration := fmt.Sprintf("%swebhook: {host: 127.0.0.1, port: %s, certDir: %s}\ninternalCertManagement: {enable: false}\nleaderElection: {leaderElect: false}\n", p.configuration, port, dir)
	must(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(configuration), 0o600))
	c.background(t, p.program, append([]string{"--config", filepath.Join(dir, "config.yaml"), "--metrics-bind-address=0", "--health-probe-bind-address=0"}, p.args...)...)
	c.awaitWebhooks(t, p.webhooks, "127.0.0.1:"+port, certificate)
}

// writeCertificate writes a certificate for this machine with its key into a folder, under the names that controllers look for.
func writeCertificate(t *testing.T, dir string) []byte {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	return certificate
}

// awaitWebhooks waits until webhooks answer at an address, and applies their definitions.
func (c *cluster) awaitWebhooks(t *testing.T, definitions, address string, certificate []byte) {
	t.Helper()
	eventually(t, "its webhooks answer", func(ctx context.Context) bool {
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // whether it listens is the question
		conn, err := dialer.DialContext(ctx, "tcp", address)
		return err == nil && conn.Close() == nil
	})
	c.applyWebhooks(t, definitions, "", func(path string) map[string]any {
		return map[string]any{"url": "https://" + address + path, "caBundle": base64.StdEncoding.EncodeToString(certificate)}
	})
}

// applyWebhooks applies definitions of webhooks that are called as clientConfig has it for a path, and not by the Service that they name. The names of
// definitions get a prefix; without one they are called like their first webhook, since controllers ship definitions of one name.
func (c *cluster) applyWebhooks(t *testing.T, path, prefix string, clientConfig func(path string) map[string]any) {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	docs, err := document.Split(data)
	must(t, err)
	applier := &sandboxmanifest.Applier{Client: c.dynamic}
	for _, doc := range docs {
		u := &unstructured.Unstructured{}
		must(t, u.UnmarshalJSON(doc.JSON))
		list, _, err := unstructured.NestedSlice(u.Object, "webhooks")
		must(t, err)
		if first, ok := list[0].(map[string]any); ok && prefix == "" {
			u.SetName(fmt.Sprint(first["name"]))
		} else {
			u.SetName(prefix + u.GetName())
		}
		for _, item := range list {
			webhook, _ := item.(map[string]any)
			called, _, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
			must(t, err)
			webhook["clientConfig"] = clientConfig(called)
		}
		must(t, unstructured.SetNestedSlice(u.Object, list, "webhooks"))
		text, err := u.MarshalJSON()
		must(t, err)
		must(t, applier.Apply(t.Context(), text))
	}
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
