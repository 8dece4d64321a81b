package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gangctl/gangctl/pkg/cluster/document"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
	sandboxmanifest "github.com/gangctl/gangctl/sandbox/manifest"
)

// Kueue as its own installation names it. Its controller makes its certificates itself, for the Service of this name.
const (
	kueueNamespace = "kueue-system"
	kueueService   = "kueue-webhook-service"
	kueueSecret    = "kueue-webhook-server-cert"
)

// kueueCall is where the API server finds Kueue's webhooks.
type kueueCall struct{ port int64 }

// clientConfig is that of a webhook or of a conversion.
func (k kueueCall) clientConfig(path string) map[string]any {
	return map[string]any{"service": map[string]any{"namespace": kueueNamespace, "name": kueueService, "path": path, "port": k.port}}
}

// startKueue installs Kueue as its module has it, and runs its controller until the test ends: outside of the cluster, with a Service that leads there. It
// manages the kinds that its configuration calls frameworks.
func (c *cluster) startKueue(t *testing.T, program, module, frameworks string) {
	t.Helper()
	port, err := strconv.ParseInt(freePort(t), 10, 32)
	must(t, err)
	call := kueueCall{port}
	c.home(t, kueueNamespace)
	c.applyKueueDefinitions(t, module, call)
	_, err = c.client.CoreV1().Services(kueueNamespace).Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: kueueService},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = c.client.CoreV1().Secrets(kueueNamespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: kueueSecret}}, metav1.CreateOptions{})
	must(t, err)
	c.applyWebhooks(t, filepath.Join(module, "config", "components", "webhook", "manifests.yaml"), "kueue-", call.clientConfig)
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	must(t, os.WriteFile(path, fmt.Appendf(nil, `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: %s
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: %d, certDir: %s}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: true, webhookServiceName: %s, webhookSecretName: %s}
featureGates: {VisibilityOnDemand: false, MultiKueue: false}
integrations: {frameworks: [%s]}
`, kueueNamespace, port, dir, kueueService, kueueSecret, frameworks), 0o600))
	c.background(t, program, "--config", path)
	c.mountKueueCertificate(t, dir)
	eventually(t, "Kueue's webhooks answer", func(ctx context.Context) bool {
		pod := plain("probe", corev1.DefaultSchedulerName, "1")
		_, err := c.client.CoreV1().Pods(space).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil
	})
}

// applyKueueDefinitions applies the definitions of Kueue's kinds, with the webhooks that convert them.
func (c *cluster) applyKueueDefinitions(t *testing.T, module string, call kueueCall) {
	t.Helper()
	folder := filepath.Join(module, "config", "components", "crd")
	converted := map[string]bool{}
	for _, u := range objectsIn(t, filepath.Join(folder, "patches", "webhook_in_*.yaml")) {
		converted[u.GetName()] = true
	}
	applier := &sandboxmanifest.Applier{Client: c.dynamic}
	for _, u := range objectsIn(t, filepath.Join(folder, "bases", "*.yaml")) {
		if converted[u.GetName()] {
			must(t, unstructured.SetNestedMap(u.Object, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
				"clientConfig": call.clientConfig("/convert"), "conversionReviewVersions": []any{"v1"}}}, "spec", "conversion"))
		}
		text, err := u.MarshalJSON()
		must(t, err)
		must(t, applier.Apply(t.Context(), text))
		must(t, applier.WaitEstablished(t.Context(), text))
	}
}

// objectsIn are the objects in the files of a pattern.
func objectsIn(t *testing.T, pattern string) (all []*unstructured.Unstructured) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	must(t, err)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		must(t, err)
		docs, err := document.Split(data)
		must(t, err)
		for _, doc := range docs {
			u := &unstructured.Unstructured{}
			must(t, u.UnmarshalJSON(doc.JSON))
			all = append(all, u)
		}
	}
	if len(all) == 0 {
		t.Fatalf("there are no objects in %s", pattern)
	}
	return all
}

// mountKueueCertificate does what a kubelet does for Kueue's pod: the Secret's certificate and key appear in a folder.
func (c *cluster) mountKueueCertificate(t *testing.T, dir string) {
	t.Helper()
	eventually(t, "Kueue makes its certificate", func(ctx context.Context) bool {
		secret, err := c.client.CoreV1().Secrets(kueueNamespace).Get(ctx, kueueSecret, metav1.GetOptions{})
		if err != nil || len(secret.Data[corev1.TLSCertKey]) == 0 {
			return false
		}
		for _, key := range []string{corev1.TLSPrivateKeyKey, corev1.TLSCertKey} { // the controller waits for the certificate
			must(t, os.WriteFile(filepath.Join(dir, key), secret.Data[key], 0o600))
		}
		return true
	})
}

// applyQueues applies objects of Kueue, whose webhooks check them.
func (c *cluster) applyQueues(t *testing.T, manifests ...string) {
	t.Helper()
	applier := &sandboxmanifest.Applier{Client: c.dynamic}
	for _, manifest := range manifests {
		must(t, applier.Apply(t.Context(), []byte(manifest)))
	}
}

// kueueResource is one of Kueue's resources.
func kueueResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: kueue.Group, Version: "v1beta2", Resource: name}
}

// noWorkloads waits until Kueue has seen that all jobs are gone.
func (c *cluster) noWorkloads(t *testing.T) {
	t.Helper()
	eventually(t, "no Workload is left", func(ctx context.Context) bool {
		list, err := c.dynamic.Resource(kueueResource("workloads")).Namespace(space).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
}
